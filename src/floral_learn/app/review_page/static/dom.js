// Elements with text: everything from the data goes through textContent or setAttribute, never through markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const at = (id) => document.getElementById(id);
export const percent = (share) => {
  if (share > 0 && share < 0.0005) return "under 0.1\u00a0%";
  const text = share < 0.02 ? (100 * share).toFixed(1).replace(/\.0$/, "") : (100 * share).toFixed(0);
  return `${text}\u00a0%`;
};
