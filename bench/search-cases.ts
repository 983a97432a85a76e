/**
 * How far from the fastest of many kernels is what is chosen without measuring, and what few trials find. Of each case, points
 * of the kernel's space, the schedules by hand, what runs unasked and the libraries are measured, each compared with the
 * reference; processes beside each other prepare, one at a time uses the device.
 *
 *   node dist/bench/search-cases.js --out cases.jsonl [--device cuda|webgpu] [--data FOLDER] [--minutes 4] [--points 400]
 *     [--cases spmm:ppi-pathways:128,spmv:hubs:30000:12:1,…] [--workers 14] [--seeds 20] [--also FILE]
 *   node dist/bench/search-cases.js --report bench/search-cases/h100-unseen.jsonl.gz
 *
 * `--also`: a file with a candidate a line, `spmm.spt:spmm.vector(4,32,4,4)`, measured as those by hand are.
 *
 * A line of JSON for each kernel, as `collect` writes them, with what the model expected. `--report` prints the figures of
 * such a file again. Columns: the fastest's time over that of what is chosen, of the kernel that the model expects most of, of
 * the fastest schedule by hand and of the fastest library; Spearman's correlation of expected and measured times; what 16
 * trials find among what was measured, geometric mean and worst of `--seeds`, with the model (what runs unasked is one
 * of them, as `tune` does) and by chance. The time is shared
 * out among the cases.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { append, recordsIn, textOf } from './model/records.ts'
import type { Answer, SearchCase, Task, Tried } from './search-cases/case.ts'
import { nameOf, parseCase } from './search-cases/case.ts'
import { headLine, summaryLines, type Verdict, verdictLine, verdictOf } from './search-cases/verdict.ts'
import { count, option } from './support.ts'

const CASES =
  'spmm:ppi-pathways:128,sddmm:ppi-pathways:128,spmv:facebook-jhu:1,softmax:ppi-pathways:1,spmm:facebook-jhu:512,spmm:road:60000:11:32,spmm:hubs:30000:12:128,sddmm:finite-elements:30000:13:128,spmv:power-law:60000:14:1,softmax:r-mat:40000:15:1,spmm:bcsstk16:32,spmm:arxiv-like:128'
/** Kernels of a case that are measured again: the fastest so far. */
const FINALISTS = 5

/** What the shares of the case at hand took. */
let spent: Extract<Answer, { kind: 'spent' }>[] = []

/** Means of the processes, but for the device, which one has at a time: all together. */
function spentLine(): string {
  const mean = (of: (s: (typeof spent)[number]) => number): string =>
    (spent.reduce((n, s) => n + of(s), 0) / 1000 / Math.max(1, spent.length)).toFixed(1)
  const held = spent.reduce((n, s) => n + s.held, 0) / 1000
  const text = `each ${mean((s) => s.all)} s, until data were there ${mean((s) => s.opened)} s, ranking ${mean((s) => s.ranked)} s; the device was held ${held.toFixed(1)} s`
  spent = []
  return text
}

/** A process that measures, begun again where a fault of the device ended it. */
class Worker {
  readonly #args: readonly string[]
  #process: ChildProcess
  /** What the task at hand has brought. */
  #on: (tried: Tried) => void = () => {}

  constructor(args: readonly string[]) {
    this.#args = args
    this.#process = this.#begin()
  }

  #begin(): ChildProcess {
    return fork(fileURLToPath(new URL('./search-cases/worker.js', import.meta.url)), [...this.#args])
  }

  /** @param again what is to be done after a fault, with what is known by then */
  async do(task: Task, on: (tried: Tried) => void, again: () => Task | null): Promise<void> {
    this.#on = on
    for (let next: Task | null = task; next; ) {
      const ended = await this.#once(next)
      next = ended ? null : again()
      if (!ended) this.#process = this.#begin()
    }
  }

  /** Whether it came to the end. */
  #once(task: Task): Promise<boolean> {
    const child = this.#process
    return new Promise((resolve) => {
      const done = (ended: boolean): void => {
        child.off('message', heard).off('exit', exited)
        resolve(ended)
      }
      const exited = (): void => done(false)
      const heard = (a: Answer): void => {
        if (a.kind === 'tried') this.#on(a.tried)
        else if (a.kind === 'said') console.log(`  ${a.text}`)
        else if (a.kind === 'spent') spent.push(a)
        else done(true)
      }
      child.on('message', heard).on('exit', exited)
      child.send(task)
    })
  }

  close(): void {
    this.#process.kill()
  }
}

async function measured(
  of: SearchCase,
  workers: readonly Worker[],
  until: number,
  write: (t: Tried) => void,
): Promise<Tried[]> {
  const lines: Tried[] = []
  const keep = (t: Tried): void => {
    lines.push(t)
    write(t)
  }
  const points = count('points', 400)
  const task = (): Task => ({ kind: 'points', case: of, points, until, known: lines.map((t) => t.candidate) })
  await Promise.all(workers.map((w) => w.do(task(), keep, () => (Date.now() < until ? task() : null))))
  const ok = lines.filter((t) => t.status === 'ok').sort((a, b) => a.median! - b.median!)
  const own = ok.filter((t) => t.of !== 'library')
  const picked = [...own]
    .filter((t) => t.predicted !== undefined)
    .sort((a, b) => a.predicted! - b.predicted!)[0]
  const finals = [
    ...own.slice(0, FINALISTS),
    ok.find((t) => t.of === 'library'),
    ok.find((t) => t.of === 'chosen'),
    ok.find((t) => t.of === 'listed'),
    picked,
  ].filter((t) => t !== undefined)
  const once = [...new Map(finals.map((t) => [t.candidate, t])).values()]
  await workers[0]!.do({ kind: 'finals', case: of, of: once }, keep, () => null)
  return lines
}

const seeds = count('seeds', 20)
const verdicts: Verdict[] = []
const tell = async (lines: readonly Tried[]): Promise<void> => {
  if (!lines.some((t) => t.status === 'ok')) return
  const verdict = await verdictOf(lines, seeds)
  verdicts.push(verdict)
  console.log(verdictLine(verdict))
}

const report = option('report')
console.log(headLine())
if (report !== undefined) {
  const all = recordsIn(textOf(report)) as Tried[]
  for (const name of new Set(all.map(nameOf))) await tell(all.filter((t) => nameOf(t) === name))
} else {
  const out = option('out')
  if (out === undefined) throw new Error('--out FILE.jsonl says where what is measured goes')
  const kind = option('device') ?? 'cuda'
  const cases = (option('cases') ?? CASES).split(',').map(parseCase)
  const n = count('workers', Math.max(1, availableParallelism() - 2))
  const workers = Array.from(
    { length: n },
    (_, k) => new Worker([kind, option('data') ?? 'data', `${k}`, `${n}`, option('also') ?? '']),
  )
  const end = Date.now() + 60_000 * Number(option('minutes') ?? 4)
  for (const [k, of] of cases.entries()) {
    const left = (end - Date.now()) / (cases.length - k)
    if (left < 3000) break
    const start = Date.now()
    const lines = await measured(of, workers, start + left, (t) => append(out, t))
    await tell(lines)
    const ok = lines.filter((t) => t.status === 'ok').length
    console.log(
      `  ${((Date.now() - start) / 1000).toFixed(1)} s, ${ok} measured, ${lines.length - ok} not; ${spentLine()}`,
    )
  }
  for (const w of workers) w.close()
}
for (const text of summaryLines(verdicts)) console.log(text)
