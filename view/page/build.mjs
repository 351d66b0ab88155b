// Builds the page: node build.mjs OUTPUT. Runs where node_modules is, with src/ beside it.
import {createHash} from 'node:crypto';
import {readFile, writeFile} from 'node:fs/promises';
import {build} from 'esbuild';

const common = {
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  preserveSymlinks: true,
  charset: 'utf8',
  legalComments: 'none',
  target: ['es2020', 'chrome90', 'firefox90', 'safari15'],
  loader: {'.woff2': 'dataurl'},
  logLevel: 'warning',
};

const packages = new Set(); // what went into the page

async function bundle(entry) {
  const result = await build({...common, entryPoints: [entry]});
  for (const input of Object.keys(result.metafile.inputs)) {
    const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/);
    if (found) packages.add(found[1]);
  }
  return result.outputFiles[0].text.trim();
}

const script = await bundle('src/main.ts');
const style = await bundle('src/style.css');
for (const [name, text] of [['script', script], ['style', style]]) {
  if (new RegExp(`<!--|</?${name}`, 'i').test(text)) throw new Error(`the ${name} contains markup that would end it`);
}
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

// Their licences go with the page, each text once.
async function licences() {
  const names = new Map();
  for (const name of [...packages].sort()) {
    const text = (await readFile(`node_modules/${name}/LICENSE`, 'utf8')).trim().replace(/--/g, '- -');
    names.set(text, [...(names.get(text) ?? []), name]);
  }
  return [...names].map(([text, list]) => `This page contains ${list.join(', ')}:\n${text}`).join('\n\n');
}

// The page may run its own script and style, and load nothing.
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; font-src data:; img-src data:`;
const parts = {POLICY: policy, STYLE: style, SCRIPT: script, LICENCES: await licences()};
const template = await readFile('src/page.html', 'utf8');
await writeFile(process.argv[2], template.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]));
