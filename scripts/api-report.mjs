/**
 * Compares the declarations of the public entries with a stored report, so that a change of the API is seen in review.
 *   npm run api                 compares, and fails on a difference
 *   npm run api -- --record     stores the new report
 *   npm run api -- --release    stores the report of the version in package.json as the last released one
 * A change since the last release needs a version that semantic versioning permits, with a section in CHANGELOG.md.
 * Needs `dist/`, which the npm script builds.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor'
import { versionFault } from './api/semantic-version.mjs'

const { values } = parseArgs({ options: { record: { type: 'boolean' }, release: { type: 'boolean' } } })
const root = resolve(import.meta.dirname, '..')
const REPORT = join(root, 'test/support/api-report.md')
const RELEASED = join(root, 'test/support/api-report-released.md')
/** The extractor cannot follow the types of other bundlers' plugins, which `bundler` names; `register` exports nothing. */
const ENTRIES = [
  'index',
  'node',
  'device',
  'search',
  'prune',
  'notebook',
  'families',
  'runtime',
  'runtime-formats',
]

const folder = mkdtempSync(join(tmpdir(), 'spt-api-'))
const report = extract()
rmSync(folder, { recursive: true })
if (values.record || values.release) writeFileSync(REPORT, report)
if (values.release) writeFileSync(RELEASED, `${version()}\n${report}`)
const stored = existsSync(REPORT) ? readFileSync(REPORT, 'utf8') : ''
if (report !== stored) {
  const fresh = `${REPORT}.new`
  writeFileSync(fresh, report)
  spawnSync('git', ['diff', '--no-index', '--stat', '-p', REPORT, fresh], { cwd: root, stdio: 'inherit' })
  rmSync(fresh)
  fail('the API differs from test/support/api-report.md: if that is meant, npm run api -- --record')
}
if (existsSync(RELEASED)) {
  const [old, ...lines] = readFileSync(RELEASED, 'utf8').split('\n')
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  const fault = versionFault(old, lines.join('\n'), version(), report, changelog)
  if (fault) fail(fault)
}
console.log(`api: ${report.split('\n').length} lines of declarations, as stored`)

function version() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version
}

function fail(message) {
  console.error(message)
  process.exit(1)
}

/** One report over all entries, each a namespace of it, with the names of types that no entry exports. */
function extract() {
  // The extractor reads declarations of the package that contains the entry.
  const all = join(root, 'dist/lib/types/all-entries.d.ts')
  const namespace = (name) => name.replace('-', '_')
  writeFileSync(all, ENTRIES.map((name) => `export * as ${namespace(name)} from './${name}.js'\n`).join(''))
  const none = { default: { logLevel: 'none' } }
  const configObject = {
    projectFolder: root,
    mainEntryPointFilePath: all,
    compiler: {
      overrideTsconfig: {
        compilerOptions: {
          target: 'es2022',
          lib: ['es2024', 'dom', 'esnext.disposable'],
          module: 'nodenext',
          skipLibCheck: true,
          types: ['node', '@webgpu/types'],
        },
        files: [all],
      },
    },
    apiReport: {
      enabled: true,
      reportFileName: 'all.api.md',
      reportFolder: folder,
      reportTempFolder: folder,
    },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
    messages: {
      compilerMessageReporting: none,
      extractorMessageReporting: { ...none, 'ae-forgotten-export': { logLevel: 'warning' } },
      tsdocMessageReporting: none,
    },
  }
  const forgotten = new Set()
  const packageJsonFullPath = join(root, 'package.json')
  try {
    Extractor.invoke(ExtractorConfig.prepare({ configObject, packageJsonFullPath }), {
      localBuild: true,
      messageCallback(message) {
        message.handled = true
        const [, name] = /symbol "(.*?)(?:[$_]\d+)?" needs/.exec(message.text) ?? []
        if (message.messageId === 'ae-forgotten-export') forgotten.add(name)
      },
    })
  } finally {
    rmSync(all)
  }
  const report = readFileSync(join(folder, 'all.api.md'), 'utf8').replaceAll('\r', '')
  // The extractor does not look into the namespace `types` of an entry.
  const [, types] =
    /namespace types_d_exports \{\s+export \{([^}]*)\}/.exec(report) ?? fail('no namespace `types`')
  for (const name of types.match(/\w+/g)) forgotten.delete(name)
  const list = [...forgotten].toSorted().map((name) => `- ${name}\n`)
  return `${report}\n## Types that signatures name and no entry exports\n\n${list.join('')}`
}
