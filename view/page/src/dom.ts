// Elements. Text goes in as text nodes only.
import type {Token} from './data';

type Child = Node | string;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  name = '',
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children);
  return made;
}

export function svgElement<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number> = {},
): SVGElementTagNameMap[K] {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

// The token in its shown form, isolated from the direction of the text around it.
export function tokenElement(token: Token, name = 'token'): HTMLElement {
  const made = element('bdi', name);
  for (const run of token.runs) made.append(run.symbol ? element('span', 'symbol', run.text) : run.text);
  return made;
}
