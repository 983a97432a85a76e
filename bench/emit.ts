/**
 * From text to printed kernel: `npm run build && node dist/bench/emit.js [--repeats N] [--json PATH]`. Each stage by
 * itself, in milliseconds: cold (the first time in a fresh process) and the median of warm runs (the latter half).
 * Two texts: `kernel` is spmm with one schedule alone, `file` all of kernels/spmm.spt with what it imports.
 */
import { readFileSync } from 'node:fs'
import type { Program } from '../src/ast/imports/linked-program.ts'
import { print } from '../src/ast/print/print.ts'
import { emit } from '../src/backends/targets/index.ts'
import { elaborate } from '../src/elaborate/index.ts'
import { Compilation } from '../src/run/compile/compile.ts'
import { loadFiles, loadProgram, programOf } from '../src/schedule/steps/language.ts'
import { stepsOf } from '../src/schedule/steps/resolve.ts'
import { child, count, isMain, median, option, packageFile, table, writeJson } from './support.ts'

const STAGES = ['parse', 'elaborate', 'steps', 'lower', 'print', 'total'] as const
type Times = Record<(typeof STAGES)[number], number>

interface Case {
  readonly text: 'kernel' | 'file'
  readonly schedule: string | null
  readonly target: 'js' | 'wgsl' | 'cuda'
}

export interface EmitFigure extends Case {
  readonly characters: number
  readonly cold: Times
  readonly warm: Times
}

const CASES: readonly Case[] = [
  { text: 'kernel', schedule: null, target: 'js' },
  { text: 'kernel', schedule: 'cpu', target: 'js' },
  { text: 'kernel', schedule: 'gpu', target: 'wgsl' },
  { text: 'kernel', schedule: 'gpu', target: 'cuda' },
  { text: 'file', schedule: 'cpu', target: 'js' },
  { text: 'file', schedule: 'gpu', target: 'wgsl' },
  { text: 'file', schedule: 'gpu', target: 'cuda' },
]

const PATH = packageFile('kernels/spmm.spt')
const read = async (path: string): Promise<string> => readFileSync(path, 'utf8')

/** Every stage once. */
async function once(c: Case, parse: () => Program | Promise<Program>): Promise<Times> {
  const marks = [performance.now()]
  const mark = (): number => marks.push(performance.now())
  const program = await parse()
  mark()
  const { kernels, schedules } = elaborate(program)
  mark()
  const steps = c.schedule === null ? [] : stepsOf(schedules.get('spmm')!.get(c.schedule)!)
  const scheduled = steps.reduce((k, s) => k.step(s), Compilation.of(kernels.get('spmm')!))
  // Where no step asked for loops, this makes them.
  void scheduled.loops
  mark()
  const { plan } = scheduled
  mark()
  emit(plan, c.target)
  mark()
  const out = { total: marks[5]! - marks[0]! } as Times
  for (let k = 0; k < 5; k++) out[STAGES[k]!] = marks[k + 1]! - marks[k]!
  return out
}

/** spmm and one schedule as a text of their own. */
async function alone(schedule: string | null): Promise<string> {
  const { files } = await loadFiles(PATH, read)
  const file = files.get(PATH)!
  const decls = file.decls.filter(
    (d) =>
      (d.kind === 'kernel' && d.name.name === 'spmm') ||
      (d.kind === 'schedule' && d.kernel.name === 'spmm' && d.name.name === schedule),
  )
  return print({ ...file, imports: [], decls })
}

/** One case, in a process that has done nothing else. */
async function measure(c: Case, text: string, repeats: number): Promise<EmitFigure> {
  const parse = (): Program | Promise<Program> =>
    c.text === 'kernel' ? programOf({ name: 'spmm.spt', text }) : loadProgram(PATH, read)
  const cold = await once(c, parse)
  const runs: Times[] = []
  for (let k = 0; k < repeats; k++) runs.push(await once(c, parse))
  const late = runs.slice(repeats >> 1)
  const warm = Object.fromEntries(STAGES.map((s) => [s, median(late.map((r) => r[s]))])) as Times
  return { ...c, characters: text.length, cold, warm }
}

export async function emitFigures(repeats: number): Promise<EmitFigure[]> {
  const figures: EmitFigure[] = []
  for (const [k, c] of CASES.entries()) {
    const text = c.text === 'kernel' ? await alone(c.schedule) : await read(PATH)
    figures.push(child(['--case', String(k), '--text', text, '--repeats', String(repeats)], import.meta.url))
  }
  return figures
}

if (isMain(import.meta.url)) {
  const repeats = count('repeats', 100)
  const k = option('case')
  if (k === undefined) {
    const figures = await emitFigures(repeats)
    console.log('Milliseconds; warm is the median, cold the first run of a process.\n')
    console.log(
      table(
        ['text', 'schedule', 'target', 'characters', ...STAGES.map((s) => `${s}`), 'total cold'],
        figures.map((f) => [
          f.text,
          f.schedule ?? 'none',
          f.target,
          String(f.characters),
          ...STAGES.map((s) => f.warm[s]),
          f.cold.total,
        ]),
      ),
    )
    writeJson(figures)
  } else process.stdout.write(JSON.stringify(await measure(CASES[Number(k)]!, option('text')!, repeats)))
}
