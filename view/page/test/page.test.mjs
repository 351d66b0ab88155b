// The page and the SVG, looked at in a real browser. Run by ctest, which sets:
//   REGARD_PAGE_BUILD    the folder with node_modules; screenshots go to its screenshots/
//   REGARD_VIEW_SAMPLES  the program that writes the sample documents
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {pathToFileURL} from 'node:url';

const build = process.env.REGARD_PAGE_BUILD;
const chromiumPath = process.env.REGARD_CHROMIUM ?? '/usr/bin/chromium';
const missing = existsSync(chromiumPath) ? false : `there is no browser at ${chromiumPath}`;
if (missing && process.env.CI === 'true') throw new Error(missing);
const options = {skip: missing};

const screenshots = path.join(build, 'screenshots');
let samples;
let browser;

before(async () => {
  if (missing) return;
  const {chromium} = createRequire(path.join(build, '/'))('playwright-core');
  samples = mkdtempSync(path.join(tmpdir(), 'regard-view-'));
  execFileSync(process.env.REGARD_VIEW_SAMPLES, [samples]);
  mkdirSync(screenshots, {recursive: true});
  browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
});

after(async () => {
  await browser?.close();
  if (samples) rmSync(samples, {recursive: true});
});

const url = (file) => pathToFileURL(path.join(samples, file)).href;

// Opens a sample; asserts that it asked for nothing else and complained about nothing.
async function open(file, settings = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, colorScheme: 'light', ...settings});
  const page = await context.newPage();
  const requests = [];
  const complaints = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => complaints.push(dialog.message()));
  await page.goto(url(file));
  if (file.endsWith('.html')) await page.locator('.panel canvas').first().waitFor();
  await page.waitForTimeout(100);
  assert.deepEqual(requests.filter((one) => !one.startsWith('data:')), [url(file)]);
  assert.deepEqual(complaints, []);
  return page;
}

// [rows, columns] of a panel's heatmap, measured: its size in cells.
async function shape(panel) {
  return panel.locator('.cells').evaluate((cells) => {
    const labels = [...cells.parentElement.querySelectorAll('.rows .label')].map((one) => Number(one.getAttribute('y')));
    const cell = labels[0] * 2;
    return [cells.clientHeight / cell, cells.clientWidth / cell];
  });
}

// The colour at a place within a cell, as [red, green, blue, alpha].
async function pixel(panel, row, column, [rows, columns], x = 0.25, y = 0.25) {
  return panel.locator('.cells canvas').evaluate(
    (canvas, at) => {
      const point = [((at.column + at.x) / at.columns) * canvas.width, ((at.row + at.y) / at.rows) * canvas.height];
      return [...canvas.getContext('2d').getImageData(Math.floor(point[0]), Math.floor(point[1]), 1, 1).data];
    },
    {row, column, rows, columns, x, y},
  );
}

async function hover(page, panel, row, column, [rows, columns]) {
  const cells = panel.locator('.cells');
  await cells.scrollIntoViewIfNeeded();
  const box = await cells.boundingBox();
  await page.mouse.move(box.x + ((column + 0.5) / columns) * box.width, box.y + ((row + 0.5) / rows) * box.height);
}

const texts = (panel, selector) => panel.locator(selector).evaluateAll((found) => found.map((one) => one.textContent));

test('every sample opens without a request, an error or a sideways scroll', options, async () => {
  for (const name of ['date', 'sentence', 'many', 'hostile', 'special', 'causal', 'long', 'pair', 'grid']) {
    const page = await open(`${name}.html`);
    for (const width of [1280, 390]) {
      await page.setViewportSize({width, height: 900});
      await page.waitForTimeout(100);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${name} at ${width} pixels is ${overflow} too wide`);
      await page.screenshot({path: path.join(screenshots, `${name}-${width}.png`)});
    }
    await page.context().close();
  }
});

test('a grid keeps its columns at any width', options, async () => {
  const page = await open('grid.html');
  for (const width of [1280, 390]) {
    await page.setViewportSize({width, height: 900});
    await page.waitForTimeout(100);
    const places = await page.locator('.panel').evaluateAll((panels) =>
      panels.map((one) => one.getBoundingClientRect()).map((box) => [box.left, box.top]));
    assert.equal(places.length, 24);
    places.forEach(([left, top], i) => {
      assert.ok(Math.abs(left - places[i % 6][0]) < 1, `panel ${i} at ${width} pixels`);
      assert.ok(Math.abs(top - places[i - (i % 6)][1]) < 1, `panel ${i} at ${width} pixels`);
    });
  }
  await page.context().close();
});

test('tokens that look like markup are shown letter by letter', options, async () => {
  const page = await open('hostile.html');
  const tokens = ['hello', 'world', 'entrar<!--#exec', 'cmd', '"ls', '-->'];
  const first = page.locator('.panel').first();
  for (const selector of ['.rows .label', '.columns .label', '.keys .word', '.queries .word']) {
    assert.deepEqual(await texts(first, selector), tokens);
  }
  assert.deepEqual(await texts(page.locator('.panel').nth(1), '.keys .word'), [
    '</script><script>window.hacked=1</script>', '<img src=x onerror=window.hacked=2>', '</s>', '<pad>', '&amp;',
    '@@DATA@@', '<!--', '<script', 'a<U+2028>b',
  ]);
  assert.equal(await page.locator('h1').textContent(), '</script><script>window.hacked=1</script><!-- <script>');
  assert.equal(await page.title(), '</script><script>window.hacked=1</script><!-- <script>');
});

test('nothing in the data runs', options, async () => {
  const page = await open('hostile.html');
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('script').count(), 2);
  assert.equal(await page.locator('img, iframe, object, embed').count(), 0);
  // Nor would it, had it become an element: the policy names the page's own script.
  await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.hacked = 4';
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.hacked), undefined);
});

test('two tokens are drawn 1 x 2', options, async () => {
  const page = await open('pair.html');
  const panel = page.locator('.panel');
  assert.deepEqual(await shape(panel), [1, 2]);
  assert.deepEqual(await texts(panel, '.columns .label'), ['left', 'right']);
  assert.deepEqual(await pixel(panel, 0, 0, [1, 2]), [0x22, 0x23, 0x3b, 255]);
  await hover(page, panel, 0, 1, [1, 2]);
  assert.equal(await page.locator('.tooltip .weight').textContent(), '0.1');
});

test('3 queries over 12 keys: own labels on each axis, masked at the end of the early rows', options, async () => {
  const page = await open('causal.html', {deviceScaleFactor: 2});
  const panel = page.locator('.panel');
  assert.deepEqual(await shape(panel), [3, 12]);
  assert.equal(await panel.locator('.cells canvas').evaluate((one) => one.width / one.clientWidth), 2);
  assert.deepEqual(await texts(panel, '.rows .label'), ['q0', 'q1', 'q2']);
  assert.deepEqual(await texts(panel, '.columns .label'), Array.from({length: 12}, (_, i) => `k${i}`));
  for (let row = 0; row < 3; row++) {
    for (let column = 0; column < 12; column++) {
      const alpha = (await pixel(panel, row, column, [3, 12]))[3];
      assert.equal(alpha, column > row + 9 ? 0 : 255, `row ${row}, column ${column}`);
    }
  }
  await hover(page, panel, 0, 11, [3, 12]);
  assert.equal(await page.locator('.tooltip .weight').textContent(), 'masked');
});

test('labels stand at their cells', options, async () => {
  for (const name of ['causal', 'sentence', 'long']) {
    const page = await open(`${name}.html`);
    const offsets = await page.locator('.heatmap').evaluate((heatmap) => {
      const box = heatmap.querySelector('.cells').getBoundingClientRect();
      const rows = [...heatmap.querySelectorAll('.rows .label')];
      const cell = box.height / rows.length;
      const middle = (one) => (one.getBoundingClientRect().top + one.getBoundingClientRect().bottom) / 2;
      return rows.map((one, i) => middle(one) - (box.top + (i + 0.5) * cell));
    });
    for (const offset of offsets) assert.ok(Math.abs(offset) < 3, `${name}: a label is ${offset} pixels off`);
    const starts = await page.locator('.heatmap').evaluate((heatmap) => {
      const box = heatmap.querySelector('.cells').getBoundingClientRect();
      const labels = [...heatmap.querySelectorAll('.columns .label')];
      const cell = box.width / labels.length;
      return labels.map((one, i) => {
        const at = one.getStartPositionOfChar(0).matrixTransform(one.getScreenCTM());
        const flat = one.getAttribute('text-anchor') === 'middle';
        const x = flat ? (one.getBoundingClientRect().left + one.getBoundingClientRect().right) / 2 : at.x;
        return x - (box.left + (i + 0.5) * cell);
      });
    });
    for (const offset of starts) assert.ok(Math.abs(offset) < 8, `${name}: a label is ${offset} pixels off`);
    await page.context().close();
  }
});

test('not a number is hatched and masked is bare, both outside the colour range', options, async () => {
  const page = await open('special.html');
  const panel = page.locator('.panel').first();
  const hatch = new Set();
  for (let x = 0.1; x < 0.9; x += 0.05) hatch.add(String(await pixel(panel, 1, 0, [4, 4], x, 0.5)));
  assert.ok(hatch.has('214,51,108,255') && hatch.has('0,0,0,0'), [...hatch].join(' '));
  assert.deepEqual(await pixel(panel, 0, 3, [4, 4]), [0, 0, 0, 0]);
  assert.deepEqual(await texts(panel, '.legend span'), ['masked', 'not a number']);
  // The masked cells hold 1e9, which is not in the range.
  assert.equal((await texts(page, 'header .bar .tick')).at(-1), '0.4802');
  await hover(page, panel, 1, 0, [4, 4]);
  assert.equal(await page.locator('.tooltip .weight').textContent(), 'not a number');
});

test('white space, an empty token and stray bytes are told apart', options, async () => {
  const page = await open('special.html');
  const shown = await texts(page.locator('.panel').nth(1), '.keys .word');
  assert.deepEqual(shown, ['the', '·the', '↵', '⇥', '∅', '<0xF0>', '<U+200B>', '東京', 'a<U+001B>[31m']);
});

test('pointing at a cell names the pair and lights its row and column', options, async () => {
  const page = await open('date.html');
  const panel = page.locator('.panel');
  await hover(page, panel, 5, 3, [11, 9]);
  const tooltip = page.locator('.tooltip');
  // The softmax that view_samples draws: row 5 looks at column 3.
  const scores = Array.from({length: 9}, (_, j) => Math.exp(0.7 * Math.sin(12 * 5 + 7 * j) - 2.2 * Math.abs(j - 3)));
  const expected = scores[3] / scores.reduce((sum, one) => sum + one);
  assert.equal(await tooltip.locator('.weight').textContent(), String(Number(expected.toPrecision(4))));
  assert.deepEqual(await texts(tooltip, '.pair > *'), ['normalised', '0', '6 of 11', 'as written', 'March', '4 of 9']);
  assert.deepEqual(await texts(panel, '.rows .label.on'), ['0']);
  assert.deepEqual(await texts(panel, '.columns .label.on'), ['March']);
  const [cells, row, column, focus] = await Promise.all(
    ['.cells', '.band.row', '.band.column', '.focus'].map((selector) => panel.locator(selector).boundingBox()),
  );
  // Within the width of a line, which the browser counts in.
  const near = (a, b) => assert.ok(Math.abs(a - b) < 3, `${a} is not ${b}`);
  near(row.width, cells.width);
  near(row.y, cells.y + (5 / 11) * cells.height);
  near(column.height, cells.height);
  near(column.x, cells.x + (3 / 9) * cells.width);
  near(focus.width, cells.width / 9);
  assert.notEqual(await panel.locator('.keys .word').nth(3).evaluate((word) => word.style.backgroundColor), '');
  await page.screenshot({path: path.join(screenshots, 'date-hover.png')});
  await page.mouse.move(2, 2);
  assert.equal(await tooltip.isVisible(), false);
  assert.equal(await panel.locator('.band').count(), 0);
});

test('pointing at a target word tints the source words by their weight', options, async () => {
  const page = await open('date.html');
  await page.locator('.queries .word').nth(8).hover();
  const tints = await page.locator('.keys .word').evaluateAll((words) => words.map((word) => word.style.backgroundColor));
  assert.equal(tints.filter((tint) => tint !== '').length, 3);
  assert.deepEqual(await texts(page.locator('.tooltip'), '.tops .token'), ['third', 'the', 'of', 'March', '2']);
  assert.deepEqual(await texts(page, '.rows .label.on'), ['0']);
  await page.screenshot({path: path.join(screenshots, 'date-word.png')});
});

test('the keyboard moves from cell to cell and is told what is there', options, async () => {
  const page = await open('date.html');
  await page.locator('.heatmap').focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'End', 'ArrowRight']) await page.keyboard.press(key);
  assert.deepEqual(await texts(page.locator('.tooltip'), '.pair .where'), ['2 of 11', '9 of 9']);
  assert.match(await page.locator('.spoken').textContent(), /^normalised 0, 2 of 11; as written <\/s>, 9 of 9: /);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.tooltip').isVisible(), false);
});

test('a click keeps a cell lit while the pointer moves on', options, async () => {
  const page = await open('date.html');
  const panel = page.locator('.panel');
  await hover(page, panel, 2, 1, [11, 9]);
  await page.mouse.down();
  await page.mouse.up();
  await hover(page, panel, 7, 7, [11, 9]);
  await page.mouse.move(2, 2);
  assert.deepEqual(await texts(page.locator('.tooltip'), '.pair .where'), ['3 of 11', '2 of 9']);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.tooltip').isVisible(), false);
});

test('a tap lights a cell, a label or a word and keeps it', options, async () => {
  const page = await open('pair.html', {hasTouch: true, isMobile: true, viewport: {width: 390, height: 800}});
  const box = await page.locator('.cells').boundingBox();
  await page.touchscreen.tap(box.x + box.width * 0.75, box.y + box.height / 2);
  assert.deepEqual(await texts(page.locator('.tooltip'), '.pair .token'), ['query', 'right']);
  assert.equal(await page.locator('.focus').count(), 1);
  await page.locator('.rows .label').tap();
  assert.equal(await page.locator('.focus').count(), 0);
  assert.equal(await page.locator('.band.row').count(), 1);
  await page.locator('.keys .word').first().tap();
  assert.deepEqual(await texts(page, '.columns .label.on'), ['left']);
  assert.ok(await page.locator('.tooltip').isVisible());
});

test('panels share one range, and the bar says so', options, async () => {
  const page = await open('many.html', {viewport: {width: 1400, height: 900}});
  assert.equal(await page.locator('.panel').count(), 10);
  assert.equal(await page.locator('header .bar figcaption').textContent(), 'weight, one range for all 10 panels');
  assert.equal(await page.locator('.panel .bar').count(), 0);
  const faint = await pixel(page.locator('.panel').first(), 9, 0, [10, 8]);
  await page.getByRole('button', {name: 'Own ranges'}).click();
  assert.equal(await page.locator('header .bar').count(), 0);
  assert.equal(await page.locator('.panel .bar').count(), 10);
  assert.deepEqual(await pixel(page.locator('.panel').first(), 9, 0, [10, 8]), [0x22, 0x23, 0x3b, 255]);
  assert.notDeepEqual(faint, [0x22, 0x23, 0x3b, 255]);
});

test('one panel at a time, chosen by name or in turn', options, async () => {
  const page = await open('many.html');
  await page.getByRole('button', {name: 'One', exact: true}).click();
  assert.deepEqual(await texts(page, '.panel h2'), ['the third of March 2 0 2 7']);
  await page.getByRole('button', {name: 'Previous panel'}).click();
  assert.deepEqual(await texts(page, '.panel h2'), ['the twelfth of May 1 9 1 2']);
  await page.getByLabel('Panel', {exact: true}).selectOption('3');
  assert.deepEqual(await texts(page, '.panel h2'), ['le 1 4 juillet 1 7 8 9']);
  await page.screenshot({path: path.join(screenshots, 'many-one.png')});
});

test('dark and light follow the system, or the choice', options, async () => {
  const page = await open('date.html', {colorScheme: 'dark'});
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await ground(), 'rgb(17, 19, 27)');
  const strongest = () => pixel(page.locator('.panel'), 10, 8, [11, 9], 0.25, 0.25);
  assert.deepEqual(await strongest(), [0xda, 0xf3, 0xde, 255]);
  await page.screenshot({path: path.join(screenshots, 'date-dark.png')});
  await page.getByRole('button', {name: 'Light'}).click();
  assert.equal(await ground(), 'rgb(244, 245, 247)');
  assert.deepEqual(await strongest(), [0x22, 0x23, 0x3b, 255]);
  await page.getByRole('button', {name: 'Auto'}).click();
  assert.equal(await ground(), 'rgb(17, 19, 27)');
  await page.emulateMedia({colorScheme: 'light'});
  await page.waitForFunction(() => getComputedStyle(document.body).backgroundColor === 'rgb(244, 245, 247)');
});

test('the SVG is well formed, verbatim and without script', options, async () => {
  for (const name of ['date', 'sentence', 'many', 'hostile', 'special', 'causal', 'long', 'pair', 'grid']) {
    const page = await open(`${name}.svg`);
    assert.equal(await page.locator('svg').count(), 1, name);
    assert.equal(await page.locator('parsererror, script, foreignObject, image').count(), 0);
    if (name === 'hostile') {
      const shown = await texts(page, 'text');
      assert.ok(shown.includes('entrar<!--#exec') && shown.includes('-->') && shown.includes('&lt;source&gt;'));
    }
    await page.setViewportSize(await page.locator('svg').evaluate((svg) => {
      return {width: Math.ceil(svg.width.baseVal.value), height: Math.ceil(svg.height.baseVal.value)};
    }));
    await page.screenshot({path: path.join(screenshots, `${name}.svg.png`)});
    await page.context().close();
  }
});
