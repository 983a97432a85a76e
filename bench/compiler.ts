/**
 * How long commands take and how the compiler's time grows: `npm run build && node dist/bench/compiler.js [--most N]
 * [--json PATH]`. Commands are timed whole, the best of five processes. Programs of one shape and many sizes, each in a
 * process of its own, have their stages timed: the best of a few runs, after one that is not counted; of one size, of a
 * hundred. All in milliseconds of CPU. `growth` is the exponent between the last two sizes: 1 is linear.
 *
 * What the curves show: from 100 to 1,000 statements, statements of a block and launches the exponents of the whole are
 * 1.15, 1.09 and 1.05, and 0.97 from 48 to 192 parts. Reading is two thirds of it (Ohm, 0.9 ms a statement). Of the steps of
 * many parts, about 0.5 ms each, a fifth is the collector's: a state keeps those before it, for undo, and their kernels.
 */

import { spawnSync } from 'node:child_process'
import { readParsed } from '../src/api/programs/program.ts'
import { SptError } from '../src/ast/diagnostics/diagnostic.ts'
import { emit } from '../src/backends/targets/index.ts'
import { elaborate } from '../src/elaborate/index.ts'
import { readProgramText } from '../src/io/package/program-text.ts'
import { Compilation } from '../src/run/compile/compile.ts'
import { programOf } from '../src/schedule/steps/language.ts'
import { stepsOf } from '../src/schedule/steps/resolve.ts'
import { child, count, cpu, isMain, option, packageFile, table, writeJson } from './support.ts'

const STAGES = ['parse', 'elaborate', 'steps', 'lower', 'print'] as const
type Times = Record<(typeof STAGES)[number], number>

export interface CompilerFigure {
  readonly shape: string
  readonly size: number
  readonly times?: Times
  /** The code of the refusal. */
  readonly refused?: string
}

interface Shape {
  readonly name: string
  readonly sizes: readonly number[]
  /** A kernel and its schedules; the first is timed, or all (`every`). */
  readonly text: (n: number) => string
  readonly args?: (n: number) => readonly number[]
  readonly every?: true
}

const times = (n: number, f: (k: number) => string, between = '\n'): string =>
  Array.from({ length: n }, (_, k) => f(k)).join(between)

const elementwise = (body: string, more = ''): string => `kernel k(n: size) {
  axis i = dense_fixed(n)
  buffer A: f32[i] in
  buffer B: f32[i] out
${body}
}
${more}`

/** Statements of a loop that all threads of a block run through: whether a barrier parts them is asked of all. */
const inBlocks = (body: string): string => `kernel k(m: size, n: size) {
  axis r = dense_fixed(m)
  axis i = dense_fixed(n)
  buffer A: f32[r, i] in
  buffer B: f32[r, i] out
  iterate s [r, i] as SS {
${body}
  }
}
schedule k.gpu {
  split i by 64 -> (io, ii)
  reorder (io, r, ii)
  bind io to block.x, ii to thread.x
}
`

const SPMM = `kernel spmm(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
`
const GPU = (k: number): string => `schedule spmm.gpu${k} {
  reorder (i, f, j)
  split f by 32 -> (fo, fi)
  split i by ${(k % 8) + 1} -> (io, ii)
  reorder (io, fo, ii, fi, j)
  bind io to block.x, fo to block.y, ii to thread.y, fi to thread.x
}`

const SIZES = [10, 30, 100, 300, 1000]

const SHAPES: readonly Shape[] = [
  {
    name: 'a kernel of nine lines',
    sizes: [1],
    text: () => elementwise('  iterate add [i] as S {\n    B[i] = 2.0 * A[i] + 1.0\n  }'),
  },
  {
    name: 'statements',
    sizes: SIZES,
    text: (n) => elementwise(`  iterate s [i] as S {\n${times(n, (k) => `    B[i] = A[i] + ${k}.0`)}\n  }`),
  },
  {
    name: 'statements of a block',
    sizes: SIZES,
    text: (n) => inBlocks(times(n, (k) => `    B[r, i] = A[r, i] + ${k}.0`)),
  },
  {
    name: 'iterations (launches)',
    sizes: SIZES,
    text: (n) => elementwise(times(n, (k) => `  iterate s${k} [i] as S { B[i] = A[i] + ${k}.0 }`)),
  },
  {
    name: 'lets',
    sizes: SIZES,
    text: (n) =>
      elementwise(
        `  iterate s [i] as S {\n    let x0 = A[i]\n${times(n, (k) => `    let x${k + 1} = x${k} * x${k} + ${k}.0`)}\n    B[i] = x${n}\n  }`,
      ),
  },
  {
    name: 'chained splits',
    sizes: SIZES,
    text: (n) =>
      elementwise(
        '  iterate s [i] as S { B[i] = A[i] }',
        `schedule k.s {\n${times(n, (k) => `  split ${k === 0 ? 'i' : `i${k - 1}`} by 1 -> (i${k}, o${k})`)}\n}`,
      ),
  },
  {
    name: 'parts (hyb)',
    sizes: [1, 2, 4, 8, 16, 32],
    text: () => `import "sparsetile/kernels/spmm.spt"\nkernel unused(n: size) {}`,
    args: (c) => [c, 5],
  },
  {
    name: 'schedules',
    sizes: [1, ...SIZES],
    text: (n) => `${SPMM}${times(n, GPU)}`,
    every: true,
  },
]

/** Every stage once. */
async function once(shape: Shape, n: number): Promise<Times> {
  const out = { parse: 0, elaborate: 0, steps: 0, lower: 0, print: 0 }
  let before = cpu()
  const lap = (stage: keyof Times): void => {
    const now = cpu()
    out[stage] += now - before
    before = now
  }
  // Texts are kept by their names.
  const name = `text${runs++}.spt`
  const text = shape.text(n)
  const program = text.startsWith('import')
    ? await readParsed({ name, text }, { files: readProgramText, imports: readProgramText })
    : programOf({ name, text })
  lap('parse')
  const { kernels, schedules } = elaborate(program)
  lap('elaborate')
  const kernel = kernels.get(shape.args ? 'spmm' : [...kernels.keys()][0]!)!
  const named = schedules.get(kernel.name)
  const chosen = shape.args ? [named!.get('hyb')!] : [...(named?.values() ?? [])]
  for (const schedule of chosen.length > 0 ? chosen.slice(0, shape.every ? n : 1) : [null]) {
    const steps = schedule ? stepsOf(schedule, shape.args?.(n)) : []
    const scheduled = steps.reduce((k, s) => k.step(s), Compilation.of(kernel))
    void scheduled.loops
    lap('steps')
    const { plan } = scheduled
    lap('lower')
    emit(plan, shape.every ? 'cuda' : 'js')
    lap('print')
  }
  return out
}
let runs = 0

async function measure(shape: Shape, size: number): Promise<CompilerFigure> {
  try {
    const best = await once(shape, size)
    for (let k = 0; k < (size > 100 ? 2 : size === 1 ? 100 : 5); k++) {
      const next = await once(shape, size)
      for (const stage of STAGES) best[stage] = k === 0 ? next[stage] : Math.min(best[stage], next[stage])
    }
    return { shape: shape.name, size, times: best }
  } catch (e) {
    const refused = e instanceof SptError ? e.code : String(e).split('\n')[0]!
    return { shape: shape.name, size, refused }
  }
}

export function compilerFigures(most: number): CompilerFigure[] {
  return SHAPES.flatMap((shape, s) =>
    shape.sizes
      .filter((size) => size <= most)
      .map((size) => child<CompilerFigure>(['--shape', String(s), '--size', String(size)], import.meta.url)),
  )
}

const SPMM_FILE = packageFile('kernels/spmm.spt')
const CORA = ['--kernel', 'spmm', '--bind', `A=${packageFile('data/cora.mtx')}`, '--size', 'd=64']

/** Command lines; `cold`: nothing is kept from one to the next. */
const COMMANDS: readonly { readonly name: string; readonly args: readonly string[]; readonly cold?: true }[] =
  [
    { name: '--version', args: ['--version'] },
    {
      name: 'emit of one schedule',
      args: ['emit', SPMM_FILE, '--kernel', 'spmm', '--target', 'cuda', '--schedule', 'gpu'],
    },
    { name: 'run on cora', args: ['run', SPMM_FILE, ...CORA] },
    { name: 'check, nothing changed', args: ['check', SPMM_FILE] },
    { name: 'check, cold', args: ['check', SPMM_FILE], cold: true },
  ]

const TELLS =
  'data:text/javascript,process.on("exit",()=>{const{user,system}=process.cpuUsage();process.stderr.write("\\nCPU "+(user+system)/1000)})'

/** Milliseconds of CPU of a whole process, the best of five. */
function commandTime({ name, args, cold }: (typeof COMMANDS)[number]): number {
  const env = { ...process.env, ...(cold ? { SPT_CACHE_DIR: 'off' } : {}) }
  const command = ['--import', TELLS, packageFile('dist/lib/spt.js'), ...args]
  const once = (): number => {
    const { status, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8', env })
    if (status !== 0) throw new Error(`spt ${name} failed: ${stderr}`)
    return Number(/CPU ([\d.]+)$/.exec(stderr)![1])
  }
  return Math.min(...Array.from({ length: 5 }, once))
}

/** How a stage grows from the size before. */
function growth(all: readonly CompilerFigure[], k: number): string {
  const [a, b] = [all[k - 1], all[k]!]
  if (a?.shape !== b.shape || !a.times || !b.times) return ''
  const sum = (t: Times): number => STAGES.reduce((x, s) => x + t[s], 0)
  return (Math.log(sum(b.times) / sum(a.times)) / Math.log(b.size / a.size)).toFixed(2)
}

if (isMain(import.meta.url)) {
  const shape = option('shape')
  if (shape === undefined) {
    const commands = COMMANDS.map((c) => ({ name: c.name, ms: commandTime(c) }))
    console.log(
      table(
        ['command', 'ms of CPU'],
        commands.map((c) => [c.name, c.ms]),
      ),
    )
    const figures = compilerFigures(count('most', 1000))
    console.log('\nMilliseconds of CPU, warm; growth: the exponent from the size before, 1 is linear.\n')
    console.log(
      table(
        ['shape', 'size', ...STAGES, 'growth'],
        figures.map((f, k) => [
          f.shape,
          String(f.size),
          ...(f.times ? STAGES.map((s) => f.times![s]) : STAGES.map((_, s) => (s === 0 ? f.refused! : ''))),
          growth(figures, k),
        ]),
      ),
    )
    writeJson({ commands, figures })
  } else process.stdout.write(JSON.stringify(await measure(SHAPES[Number(shape)]!, count('size', 1))))
}
