// The attention page: heading, controls, panels.
import {colorBar, palette} from './color';
import {type Panel, readDocument} from './data';
import {element} from './dom';
import {PanelView} from './panel';
import {Tooltip} from './tooltip';

const source = readDocument();
const tooltip = new Tooltip();
const views = source.panels.map((panel) => new PanelView(source, panel, tooltip));
const several = views.length > 1;
const dark = matchMedia('(prefers-color-scheme: dark)');

let theme: 'auto' | 'light' | 'dark' = 'auto';
let shared = true;
let all = several;
let current = 0;

const kGap = 20; // pixels between cards
const kPadding = 50; // pixels of a card that are not its content
const kNarrowest = 320; // pixels of a card in a grid
const main = element('main');
const bar = element('div');

// The same two texts in every panel are not repeated above each.
const textOf = ({queries, keys}: Panel) => JSON.stringify([queries, keys]);
const firstText = textOf(source.panels[0]);
const sameTexts = source.panels.every((panel) => textOf(panel) === firstText);

const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      views.find((view) => view.root === entry.target)?.draw();
    }
  },
  {rootMargin: '600px'},
);

// Pixels for a card in which the largest matrix can be read, where several stand side by side.
function cardWidth(): number {
  const columns = Math.max(...source.panels.map((panel) => panel.keys.length));
  return Math.max(380, Math.min(1000, 180 + 18 * columns)) + kPadding;
}

function render(): void {
  document.documentElement.dataset.theme = theme === 'auto' ? (dark.matches ? 'dark' : 'light') : theme;
  tooltip.hide();
  observer.disconnect();
  const colors = palette(source);
  const caption = several ? `weight, one range for all ${views.length} panels` : 'weight';
  bar.replaceChildren(...(shared ? [colorBar(source.range, colors, caption)] : []));
  const shown = all ? views : [views[current]];
  const inside = main.clientWidth - parseFloat(getComputedStyle(main).paddingLeft) * 2;
  const room = Math.max(1, Math.floor((inside + kGap) / (cardWidth() + kGap)));
  const cards = all ? source.columns || room : 1;
  // A grid keeps its columns, and is wider than the window where it has to be.
  const narrowest = cards > room ? `${kNarrowest}px` : '0';
  main.style.gridTemplateColumns = all ? `repeat(${cards}, minmax(${narrowest}, 1fr))` : 'minmax(0, max-content)';
  main.classList.toggle('grid', all && source.columns > 0);
  const width = Math.max(cards > room ? kNarrowest : 0, (inside - kGap * (cards - 1)) / cards) - kPadding;
  for (const view of shown) {
    view.layout({
      colors,
      shared,
      wide: !all,
      reading: !all || !sameTexts,
      width,
    });
  }
  main.replaceChildren(...shown.map((view) => view.root));
  for (const view of shown) observer.observe(view.root);
}

function segmented<T>(name: string, choices: [string, T][], chosen: T, choose: (value: T) => void): HTMLElement {
  const group = element('div', 'segmented');
  group.setAttribute('role', 'group');
  group.setAttribute('aria-label', name);
  for (const [text, value] of choices) {
    const button = element('button', '', text);
    button.type = 'button';
    button.setAttribute('aria-pressed', String(value === chosen));
    button.addEventListener('click', () => {
      for (const other of group.children) other.setAttribute('aria-pressed', String(other === button));
      choose(value);
      render();
    });
    group.append(button);
  }
  return group;
}

// Which panel, where one is shown at a time.
function chooser(): HTMLElement {
  const select = element('select');
  select.setAttribute('aria-label', 'Panel');
  source.panels.forEach((panel, i) => {
    const option = element('option', '', `${i + 1}. ${panel.title}`);
    option.value = String(i);
    select.append(option);
  });
  const go = (index: number) => {
    current = (index + views.length) % views.length;
    select.value = String(current);
    render();
  };
  select.addEventListener('change', () => go(Number(select.value)));
  const step = (text: string, name: string, by: number) => {
    const button = element('button', '', text);
    button.type = 'button';
    button.setAttribute('aria-label', name);
    button.addEventListener('click', () => go(current + by));
    return button;
  };
  return element('div', 'controls chooser', step('←', 'Previous panel', -1), select, step('→', 'Next panel', 1));
}

function controls(): HTMLElement {
  const group = element('div', 'controls');
  if (several) {
    const choose = chooser();
    choose.hidden = all;
    const views: [string, boolean][] = [['All', true], ['One', false]];
    group.append(
      choose,
      segmented('Panels', views, all, (value) => {
        all = value;
        choose.hidden = value;
      }),
      segmented('Colour range', [['Shared range', true], ['Own ranges', false]], shared, (value) => (shared = value)),
    );
  }
  group.append(
    segmented('Theme', [['Auto', 'auto'], ['Light', 'light'], ['Dark', 'dark']], theme, (value) => (theme = value as typeof theme)),
  );
  return group;
}

function heading(): HTMLElement {
  const axes = element('p', 'axes');
  axes.append('each row is one token of ', element('b', '', source.queryAxis), ', looking at ', element('b', '', source.keyAxis));
  return element('div', 'heading', element('h1', '', source.title || 'Attention'), axes);
}

const keys = element('span', 'keyboard', element('kbd', '', '←↑↓→'), ' move, ', element('kbd', '', 'Esc'), ' lets go.');
const help = element('footer', '', 'Point at a word, a label or a cell; click or tap to keep it. ', keys);
document.body.append(element('header', '', heading(), element('div', 'side', controls(), bar)), main, help, tooltip.root, tooltip.spoken);
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') for (const view of views) view.release();
});
addEventListener('scroll', () => tooltip.hide(), {passive: true});
addEventListener('beforeprint', () => views.forEach((view) => view.draw()));
dark.addEventListener('change', render);
let width = innerWidth;
addEventListener('resize', () => {
  if (innerWidth === width) return;
  width = innerWidth;
  render();
});
// Labels are measured, so the font comes first.
document.fonts.load("12px 'Inter Variable'").then(render, render);
