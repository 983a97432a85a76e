// `npm run docs`: builds the documentation's site into docs/.vitepress/dist: the pages of docs/ with VitePress, which fails on
// dead links, and the TypeScript API with TypeDoc. Both are dependencies of docs/package.json and not of the package, since
// they take 150 MB.
//   npm run docs -- --pages     without the API, as CI does: half the time
//   npm run docs -- --preview   serves the site afterwards
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const docs = resolve(root, 'docs')

function call(command, args, cwd = root) {
  const { status, error } = spawnSync(command, args, {
    cwd,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
}
const tool = (name, ...args) => call(resolve(docs, `node_modules/.bin/${name}`), args)

/** Whether the installed packages are those of the lock file. */
function isInstalled() {
  const installed = resolve(docs, 'node_modules/.package-lock.json')
  if (!existsSync(installed)) return false
  const versions = (path) =>
    Object.entries(JSON.parse(readFileSync(path, 'utf8')).packages)
      .filter(([name, entry]) => name !== '' && !entry.optional)
      .map(([name, { version }]) => `${name}@${version}`)
      .sort()
      .join('\n')
  return versions(installed) === versions(resolve(docs, 'package-lock.json'))
}

if (!isInstalled()) call('npm', ['ci', '--no-audit', '--no-fund', '--silent'], docs)
const options = process.argv.slice(2)
if (!options.includes('--pages')) tool('typedoc', '--options', 'docs/typedoc.json')
tool('vitepress', 'build', 'docs')
if (options.includes('--preview')) tool('vitepress', 'preview', 'docs')
