// What a newcomer does, with the package as it is published, in an empty folder: install, ask the doctor and do what it
// says, type the README's commands, run its program, and compile it as Node and as bundlers resolve modules.
import { execFile } from 'node:child_process'
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'spt-installed-'))
const started = performance.now()

const execute = promisify(execFile)

/** Runs a program in the folder and gives its output; throws with all it said where it fails. */
async function run(program, args, cwd = folder) {
  try {
    return (await execute(program, args, { cwd, maxBuffer: 2 ** 26 })).stdout
  } catch (e) {
    throw new Error(`${program} ${args.join(' ')}\n${e.stdout ?? ''}${e.stderr || e.message}`)
  }
}
/** A tool of the clone: manifests and types as other programs read them. */
const tool = (path, ...args) => run(process.execPath, [join(root, 'node_modules', path), ...args])
const npm = (...args) => run('npm', [...args, '--no-audit', '--no-fund', '--prefer-offline'])
const spt = (...args) => run(process.execPath, [join(folder, 'node_modules/.bin/spt'), ...args])
async function step(name, work) {
  const before = performance.now()
  await work()
  console.log(`${name}: ${((performance.now() - before) / 1000).toFixed(1)} s`)
}
const fail = (what) => {
  throw new Error(what)
}

const put = (name, text) => writeFileSync(join(folder, name), text)
const installed = join(folder, 'node_modules/sparsetile')
const COMMAND = 'sparsetile/kernels/spmm.spt --bind A=sparsetile/data/cora.mtx --size d=4'
const page = readFileSync(join(root, 'README.md'), 'utf8')
const words = (line) => [...line.matchAll(/(?:'[^']*'|\S)+/g)].map(([word]) => word.replaceAll("'", ''))

/** Most packages of the default installation, and most MB (2 ** 20 bytes of blocks, as `du` counts them). */
const MOST_PACKAGES = 1
const MOST_MB = 10

/** The size of what was installed. */
async function size() {
  const packages = (await npm('ls', '--all', '--parseable')).trim().split('\n').length - 1
  const blocks = (path) => lstatSync(path).blocks * 512
  const files = readdirSync(join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' })
  const mb = files.reduce((sum, f) => sum + blocks(join(folder, 'node_modules', f)), 0) / 2 ** 20
  console.log(`packages: ${packages}, ${mb.toFixed(1)} MB`)
  if (packages > MOST_PACKAGES || mb > MOST_MB) fail(`at most ${MOST_PACKAGES} packages and ${MOST_MB} MB`)
}

/** Commands that need another package name it; the doctor's advice on WebGPU is followed until there is a device. */
async function peers() {
  const records = await spt('records', 'list', '--db', 'records.db').catch((e) => e.message)
  if (!records.includes('npm i libsql')) fail(`spt records list without libsql: ${records}`)
  const cuda = await spt('run', ...words(COMMAND), '--device', 'cuda').catch((e) => e.message)
  if (!cuda.includes('npm i koffi')) fail(`CUDA without koffi: ${cuda}`)
  const { packages } = JSON.parse(await spt('doctor', '--json'))
  if (packages.map((p) => p.hint)[0] !== 'npm i libsql') fail(`doctor: ${JSON.stringify(packages)}`)
  for (const installed = new Set(); ; ) {
    const webgpu = JSON.parse(await spt('doctor', '--json')).devices.find((d) => d.kind === 'webgpu')
    if (webgpu.available) return
    const [, package_] = /^npm i (\S+)$/.exec(webgpu.hint) ?? fail(`doctor says: ${webgpu.hint}`)
    if (installed.has(package_)) fail(`after npm i ${package_}: ${webgpu.reason}`)
    await npm('install', installed.add(package_) && package_)
  }
}

/** The README's program and kernel, as files. */
async function files() {
  const [, , program] = /^```ts( run=\w+)?\n(.*?)^```$/ms.exec(page) ?? fail('the README has no program')
  const kernels = [...page.matchAll(/^```spt file=(\S+)\n(.*?)^```$/gms)]
  if (kernels.length < 2) fail('the README has no kernel with a schedule')
  for (const [, file, text] of kernels) put(file, text)
  put('main.mjs', program)
  const bound = ['--bind', 'A=sparsetile/data/cora.mtx']
  const [, expected] =
    /^```text output-of=use\n(.*?)^```$/ms.exec(page) ?? fail('the README has no output of its program')
  const values = (text) => (text.match(/\[.*\]/s)?.[0] ?? text).replace(/\s/g, '')
  const printsAsShown = async (runtime, ...args) => {
    const printed = await run(runtime, [...args, 'main.mjs'])
    if (values(printed) !== values(expected)) fail(`the README's program prints\n${printed}`)
  }
  await step('program', () => printsAsShown(process.execPath))
  await step('program, Deno', () => printsAsShown(join(root, 'node_modules/.bin/deno'), 'run', '--allow-all'))
  await step('check', () => spt('check', 'spmv.spt'))
  await step('schedule', () => spt('run', 'blocked.spt', ...bound, '--schedule', 'blocked', '--verify'))
  put(
    'main.ts',
    `${program}\ndeclare const console: { log(...values: unknown[]): void }\nexport const shape: readonly number[] = y.shape\n`,
  )
  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ])
    await step(`types, ${moduleResolution}`, () => {
      const compilerOptions = {
        module,
        moduleResolution,
        target: 'es2022',
        lib: ['es2022'],
        strict: true,
        noEmit: true,
        skipDefaultLibCheck: true,
        types: [],
      }
      put('tsconfig.json', JSON.stringify({ compilerOptions, files: ['main.ts'] }))
      return run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder])
    })
}

/** Links of the pages that are shipped. */
function links() {
  const pages = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter((p) => p.endsWith('.md'))
  const broken = pages.flatMap((p) =>
    [...readFileSync(join(installed, p), 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
      .map(([, link]) => join(dirname(join(installed, p)), link))
      .filter((target) => !existsSync(target))
      .map((target) => `${p}: ${relative(installed, target)}`),
  )
  if (broken.length > 0) fail(`links lead nowhere:\n${broken.join('\n')}`)
}

let tarball = ''
try {
  await step('install', async () => {
    const packed = await run(
      'npm',
      ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder],
      root,
    )
    put('package.json', '{ "private": true, "type": "module" }')
    tarball = join(folder, packed.trim().split('\n').at(-1))
    const { stderr } = await execute('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: folder })
    if (stderr !== '') fail(`npm install warns:\n${stderr}`)
  })
  await size()
  await step('publint', () => tool('publint/src/cli.js', 'run', '--strict', tarball))
  await step('attw', () => tool('@arethetypeswrong/cli/dist/index.js', '--profile', 'esm-only', tarball))
  await step('peers', peers)
  const commands = [...page.matchAll(/^spt (.*?)(?: +#.*)?$/gm)].map(([, line]) => line)
  if (commands.length < 4) fail('the README has lost its commands')
  // Tests run them, too (test/docs/readme.test.ts): with SPT_TURNS, as in `.ci/run`, a part of them, chosen by the seed.
  const turns = Number(process.env.SPT_TURNS ?? 1)
  const typed = async () => {
    // A search that was asked for no number of trials takes a minute.
    const less = (line) => (line.startsWith('tune ') ? ['--trials', '2'] : [])
    for (const line of commands.filter((_, k) => k % turns === Number(process.env.SPT_SEED ?? 0) % turns))
      await step(`spt ${line}`, () => spt(...words(line), ...less(line)))
  }
  const failed = (await Promise.allSettled([typed(), files()])).filter((r) => r.status === 'rejected')
  if (failed.length > 0) fail(failed.map((r) => r.reason.message).join('\n'))
  await step('links', links)
  console.log(`installed: all done in ${((performance.now() - started) / 1000).toFixed(0)} s`)
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
