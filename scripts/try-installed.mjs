// What a newcomer does, with the package as it is published, in an empty folder: install, ask the doctor and do what it
// says, type the README's commands, run its program, and compile it as Node and as bundlers resolve modules.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'spt-installed-'))
const started = performance.now()

/** Runs a program in the folder; throws with all it said where it fails. */
function run(program, args, cwd = folder) {
  try {
    return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (e) {
    throw new Error(`${program} ${args.join(' ')}\n${e.stdout ?? ''}${e.stderr ?? e.message}`)
  }
}
const npm = (...args) => run('npm', [...args, '--no-audit', '--no-fund', '--prefer-offline'])
const spt = (...args) => run(process.execPath, [join(folder, 'node_modules/.bin/spt'), ...args])
function step(name, work) {
  const before = performance.now()
  work()
  console.log(`${name}: ${((performance.now() - before) / 1000).toFixed(1)} s`)
}
const fail = (what) => {
  throw new Error(what)
}

const put = (name, text) => writeFileSync(join(folder, name), text)
const installed = join(folder, 'node_modules/sparsetile')
const page = readFileSync(join(root, 'README.md'), 'utf8')
const words = (line) => [...line.matchAll(/(?:'[^']*'|\S)+/g)].map(([word]) => word.replaceAll("'", ''))

try {
  step('install', () => {
    const packed = run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], root)
    put('package.json', '{ "private": true, "type": "module" }')
    npm('install', join(folder, packed.trim().split('\n').at(-1)))
  })

  step('doctor', () => {
    const webgpu = () => JSON.parse(spt('doctor', '--json')).devices.find((d) => d.kind === 'webgpu')
    const before = webgpu()
    if (before.available) return
    const [, package_] = /^npm install (\S+)$/.exec(before.hint) ?? fail(`doctor says: ${before.hint}`)
    npm('install', package_)
    const after = webgpu()
    if (!after.available) fail(`after npm install ${package_}: ${after.reason}`)
  })

  const commands = [...page.matchAll(/^spt (.*?)(?: +#.*)?$/gm)].map(([, line]) => line)
  if (commands.length < 4) fail('the README has lost its commands')
  for (const line of commands) step(`spt ${line}`, () => spt(...words(line)))

  const [, , program] = /^```ts( run=\w+)?\n(.*?)^```$/ms.exec(page) ?? fail('the README has no program')
  step('program', () => {
    put('main.mjs', program)
    run(process.execPath, ['main.mjs'])
    const [, file, text] = /^```spt file=(\S+)\n(.*?)^```$/ms.exec(page) ?? fail('the README has no kernel')
    put(file, text)
    spt('check', file)
    spt(
      'run',
      file,
      '--bind',
      'A=sparsetile/data/cora.mtx',
      '--size',
      'd=8',
      '--schedule',
      'parts',
      '--verify',
    )
  })

  put('main.ts', `${program}\nexport const shape: readonly number[] = C.shape\n`)
  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ])
    step(`types, ${moduleResolution}`, () => {
      const compilerOptions = {
        module,
        moduleResolution,
        target: 'es2022',
        strict: true,
        noEmit: true,
        types: [],
      }
      put('tsconfig.json', JSON.stringify({ compilerOptions, files: ['main.ts'] }))
      run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder])
    })

  step('links of the pages that are shipped', () => {
    const pages = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter((p) =>
      p.endsWith('.md'),
    )
    const broken = pages.flatMap((p) =>
      [...readFileSync(join(installed, p), 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
        .map(([, link]) => join(dirname(join(installed, p)), link))
        .filter((target) => !existsSync(target))
        .map((target) => `${p}: ${relative(installed, target)}`),
    )
    if (broken.length > 0) fail(`links lead nowhere:\n${broken.join('\n')}`)
  })
  console.log(`installed: all done in ${((performance.now() - started) / 1000).toFixed(0)} s`)
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
