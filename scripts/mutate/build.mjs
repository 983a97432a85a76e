/** One transpiled build of the sources, which contain all mutants, and of the tests: nothing is transformed for a mutant. */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { transformSync } from 'esbuild'
import { withMutants } from './mutants.mjs'

/** What tests and sources find beside them. */
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
  for (const room of ['src', 'test', 'bench', 'scripts', 'grammar'])
    cpSync(room, `${folder}/${room}`, { recursive: true })
  for (const name of BESIDE)
    if (existsSync(name)) symlinkSync(`${process.cwd()}/${name}`, `${folder}/${name}`)
  for (const room of ['src', 'test', 'bench'])
    for (const f of readdirSync(room, { recursive: true })) {
      if (!f.endsWith('.ts') || f.endsWith('.d.ts')) continue
      const path = `${room}/${f}`
      const own = mutants.filter((m) => m.file === path)
      const { code } = transformSync(withMutants(readFileSync(path, 'utf8'), own), {
        loader: 'ts',
        format: 'esm',
        target: 'node20',
      })
      const js = code.replaceAll(/(from ?["']|import\(["']|import ["'])(\.[^"']*)\.ts(["'])/g, '$1$2.js$3')
      writeFileSync(`${folder}/${path.slice(0, -3)}.js`, js)
      rmSync(`${folder}/${path}`)
    }
}
