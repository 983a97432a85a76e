/**
 * All figures in one table: `npm run build && node dist/bench/all.js [--data PATH] [--json PATH]`. Each benchmark runs in a
 * process of its own, one after the other, and can be run alone for its details. On a busy machine the times grow;
 * the ratios are of runs that were interleaved.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BuildFigure } from './build-csr.ts'
import type { EmitFigure } from './emit.ts'
import type { FormatFigure } from './formats.ts'
import type { ProductFigure } from './products.ts'
import type { ReadFigure } from './read-mtx.ts'
import { machine, option, run, table, writeJson } from './support.ts'

interface Row {
  readonly figure: string
  readonly aim: string
  readonly measured: string
  readonly against: string
}

const folder = mkdtempSync(join(tmpdir(), 'sparsetile-bench-'))

/** What a benchmark wrote with `--json`. */
function figures<T>(name: string, ...args: string[]): T[] {
  const path = join(folder, `${name}.json`)
  console.error(`${name} …`)
  run([...args, '--json', path], new URL(`./${name}.js`, import.meta.url).href)
  return (JSON.parse(readFileSync(path, 'utf8')) as { figures: T[] }).figures
}

function emission(all: readonly EmitFigure[]): Row[] {
  return all
    .filter((f) => f.schedule !== null)
    .map((f) => ({
      figure:
        f.text === 'kernel'
          ? `text to printed kernel: spmm and its schedule ${f.schedule}, to ${f.target}`
          : `the same from the whole file (${f.characters} characters and its imports), to ${f.target}`,
      aim: f.text === 'kernel' ? '< 10 ms warm' : '',
      measured: `${f.warm.total.toFixed(1)} ms (cold ${f.cold.total.toFixed(0)} ms)`,
      against: '',
    }))
}

function products(all: readonly ProductFigure[]): Row[] {
  return all.flatMap((f) => {
    const ours = Math.min(...f.ours.map((r) => r.median))
    const what = `${f.kernel} on ${f.data}${f.kernel === 'spmv' ? '' : `, d = ${f.d}`}: emitted JavaScript`
    const rows: Row[] = [
      {
        figure: `${what} against the fastest loop by hand`,
        aim: f.kernel === 'spmm' ? '≤ 1.1 × its time' : '',
        measured: `${f.ratio.toFixed(2)} × (${ours.toFixed(2)} ms)`,
        against: f.peer,
      },
    ]
    const { library } = f
    if (library)
      rows.push({
        figure: `${what} against a library`,
        aim: 'faster',
        measured: `${(library.median / ours).toFixed(0)} times as fast (it: ${library.median.toFixed(0)} ms)`,
        against: `${library.name} ${library.version}`,
      })
    return rows
  })
}

const building = (all: readonly BuildFigure[]): Row[] =>
  all.map((f) => ({
    figure: `${f.tree} from ${(f.entries / 1e6).toFixed(0)} million ${f.order} coordinates`,
    aim: f.order === 'shuffled' ? '< 2 s' : '',
    measured: `${((f.structure + f.values) / 1000).toFixed(2)} s (structure ${(f.structure / 1000).toFixed(2)} s)`,
    against: '',
  }))

const converting = (all: readonly FormatFigure[]): Row[] =>
  all.map((f) => ({
    figure: `${f.format} of ${(f.nonzeros / 1e6).toFixed(1)} million nonzeros (${f.matrix})`,
    aim: '≤ 150 ns/nonzero',
    measured: `${f.perNonzero.toFixed(0)} ns/nonzero (${f.wall.toFixed(0)} ms), padding ${(100 * f.paddingShare).toFixed(1)} %`,
    against: f.scipy
      ? `scipy ${f.scipy.version} tobsr: cpu ${f.scipy.user.toFixed(0)} ms (ours ${f.cpu.toFixed(0)})`
      : '',
  }))

const reading = (all: readonly ReadFigure[]): Row[] =>
  all.map((f) => ({
    figure: `reading a ${f.megabytes.toFixed(0)} MB .mtx (${f.field})`,
    aim: '> 100 MB/s, memory < 3 × arrays',
    measured: `${f.median.toFixed(0)} MB/s, ${f.peakOverArrays.toFixed(2)} ×`,
    against: '',
  }))

try {
  const data = option('data')
  const found = {
    emit: figures<EmitFigure>('emit'),
    products: figures<ProductFigure>('products', '--library', ...(data ? ['--data', data] : [])),
    build: figures<BuildFigure>('build-csr', '--trees', 'CSR'),
    formats: figures<FormatFigure>('formats', ...(data ? ['--data', data] : [])),
    read: figures<ReadFigure>('read-mtx'),
  }
  const rows = [
    ...emission(found.emit),
    ...products(found.products),
    ...building(found.build),
    ...converting(found.formats),
    ...reading(found.read),
  ]
  console.log(`${machine()}\n`)
  console.log(
    table(
      ['figure', 'aim', 'measured', 'against'],
      rows.map((r) => [r.figure, r.aim, r.measured, r.against]),
    ),
  )
  writeJson({ table: rows, ...found })
} finally {
  rmSync(folder, { recursive: true, force: true })
}
