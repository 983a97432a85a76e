/** One transpiled build of the sources, which contain all mutants, and of the tests: nothing is transformed for a mutant. */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { transformSync } from 'esbuild'
import { withMutants } from './mutants.mjs'

/** Files and folders that tests and sources read. */
const BESIDE = [
  'kernels',
  'data',
  'docs',
  'node_modules',
  'package.json',
  'README.md',
  'ARCHITECTURE.md',
  'examples',
]

/** Writes `src`, `test`, `bench` and `scripts` as JavaScript below `folder`. */
export function build(folder, mutants) {
  rmSync(folder, { recursive: true, force: true })
  for (const name of ['src', 'test', 'bench', 'scripts', 'grammar'])
    cpSync(name, `${folder}/${name}`, { recursive: true })
  for (const name of BESIDE)
    if (existsSync(name)) symlinkSync(`${process.cwd()}/${name}`, `${folder}/${name}`)
  for (const name of ['src', 'test', 'bench'])
    for (const f of readdirSync(name, { recursive: true })) {
      if (!f.endsWith('.ts') || f.endsWith('.d.ts')) continue
      const path = `${name}/${f}`
      const own = mutants.filter((m) => m.file === path)
      const { code } = transformSync(withMutants(readFileSync(path, 'utf8'), own), {
        loader: 'ts',
        format: 'esm',
        target: 'node20',
      })
      const js = code.replaceAll(/(from ?["']|import\(["']|import ["'])(\.[^"']*)\.ts(["'])/g, '$1$2.js$3')
      writeFileSync(`${folder}/${path.slice(0, -3)}.js`, own.length > 0 ? withSwitch(js) : js)
      rmSync(`${folder}/${path}`)
    }
}

/** In worker threads and child processes, which share the variable of the environment, mutants are switched on as well. */
const SWITCH =
  'globalThis.mutant ??= process.env.MUTANT === undefined ? () => false : (n) => n === Number(process.env.MUTANT);'
const withSwitch = (js) => (js.startsWith('#!') ? js.replace('\n', `\n${SWITCH}\n`) : `${SWITCH}\n${js}`)
