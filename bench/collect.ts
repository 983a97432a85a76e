/**
 * Measures many kernels on many matrices, each checked before it is timed, and appends a line of JSON for each: what the
 * cost model is trained from and judged by. Goes on where it stopped; compiled once, matrices brought into a format once.
 *
 * ```
 * node dist/bench/collect.js --device cuda --out times.jsonl --minutes 8 --suites spmm,spmv \
 *   --matrices road:40000:1,hubs:20000:2,cora --data DATA --widths 32,128 --pool 20
 * ```
 * `--listed N`: so many of `candidates.json` (default: all). `--share K/N`: the Kth of N shares of the kernels, with processes
 * for the others beside it; `--lock FOLDER`: they use the device in turn. `--peers`: libraries as well; `--standard`: what a
 * user gets who chooses nothing. `--only 'CANDIDATE;CANDIDATE'`: these and no others. After a fault of the device it ends with 75; run it again.
 */
import { mkdirSync, rmdirSync } from 'node:fs'
import { devices } from '../src/node.ts'
import { type Candidate, fieldOf, parseCandidate, widthValues } from './gpu/candidates.ts'
import type { Contestant, Running } from './gpu/case.ts'
import { bindRows, elementsOf, ours } from './gpu/contestants.ts'
import { isLoss } from './gpu/device-lost.ts'
import { Formats } from './gpu/formats.ts'
import { describe, nonzeros } from './gpu/matrix.ts'
import { messageOf, OurDevice } from './gpu/ours.ts'
import { Session } from './gpu/session.ts'
import type { Operation } from './gpu/suites/matrices.ts'
import { products } from './gpu/suites/products.ts'
import { samples } from './gpu/suites/samples.ts'
import { ExpectedSoftmax } from './gpu/suites/softmax.ts'
import { vectors } from './gpu/suites/vectors.ts'
import { poolOf } from './model/pool.ts'
import { append, keyOf, type Measured, readRecords } from './model/records.ts'
import { timed } from './model/timed.ts'
import { count, median, option, seedOf } from './support.ts'

type Kind = Measured['device']

/** Of the rows of a matrix, which has no other operand. */
const rowSoftmax: Operation = {
  name: 'softmax',
  letter: 'N',
  widths: [1],
  of(A) {
    const expected = new ExpectedSoftmax(A)
    return {
      checked: expected.checked,
      least: { flops: 5 * nonzeros(A), bytes: 8 * nonzeros(A) },
      ours: (on, candidate, formats) =>
        ours(
          candidate.text,
          () => bindRows(on, candidate, formats, A, []),
          async (run) => expected.check(await elementsOf(run, on, formats, A)),
        ),
      peers: async () => ({ contestants: [], memory: [] }),
    }
  },
}

const OPERATIONS: Readonly<Record<string, Operation>> = {
  spmm: products,
  sddmm: samples,
  spmv: vectors,
  softmax: rowSoftmax,
}

const list = (name: string, otherwise: string): string[] =>
  (option(name) ?? otherwise).split(',').filter((s) => s !== '')

/** One process at a time: a folder is made by one of them alone. */
async function alone<T>(lock: string | undefined, work: () => Promise<T>): Promise<T> {
  if (lock === undefined) return work()
  for (;;)
    try {
      mkdirSync(lock)
      break
    } catch {
      await new Promise((done) => setTimeout(done, 1))
    }
  try {
    return await work()
  } finally {
    rmdirSync(lock)
  }
}

async function openDevice(kind: Kind, s: Session): Promise<OurDevice> {
  if (kind === 'cpu') return new OurDevice(await devices.cpu())
  if (kind === 'cuda') return s.cuda()
  // A context of CUDA is meant to keep the clock of an NVIDIA chip up while nothing runs.
  await s.cuda().catch(() => undefined)
  return s.webgpu()
}

async function timesOf(r: Running): Promise<Pick<Measured, 'median' | 'low' | 'high' | 'samples' | 'back'>> {
  if (r.samples) return timed((options) => r.samples!(options))
  const t = await r.measure(await r.scout())
  return { median: t.event, samples: t.repeats, back: t.backToBack }
}

class Collection {
  readonly #done: Set<string>
  readonly #path: string
  readonly #lock = option('lock')
  /** Kernels on matrices whose results were right. */
  readonly #right = new Set<string>()
  /** Of this process, and by what factor those that were measured again differ. */
  readonly #times = new Map<string, number>()
  readonly #factors: number[] = []
  #count = 0

  constructor(path: string) {
    this.#path = path
    this.#done = new Set(readRecords(path).map(keyOf))
  }

  has = (of: Parameters<typeof keyOf>[0]): boolean => this.#done.has(keyOf(of))

  #write(record: Measured): void {
    append(this.#path, record)
    this.#done.add(keyOf(record))
    this.#count++
  }

  get count(): number {
    return this.#count
  }

  #again(head: Parameters<typeof keyOf>[0], us: number): void {
    const before = this.#times.get(keyOf(head))
    if (before !== undefined) this.#factors.push(Math.max(us / before, before / us))
  }

  /** How well times repeat: of kernels that were measured again at the end of their case. */
  repeated(): string {
    if (this.#factors.length === 0) return 'none measured again'
    const worst = Math.max(...this.#factors)
    return `${this.#factors.length} measured again: × ${median(this.#factors).toFixed(3)} in the median, × ${worst.toFixed(2)} at worst`
  }

  async one(
    head: Pick<Measured, 'device' | 'chip' | 'suite' | 'data' | 'width' | 'candidate'>,
    c: Contestant,
  ): Promise<void> {
    let running: Running | undefined
    try {
      const entered = await alone(this.#lock, () => c.enter())
      running = entered
      // What is right for one width of a matrix is checked again only where that is cheap.
      const known = `${head.candidate} | ${head.data}`
      const isKnown = head.width > 128 && this.#right.has(known)
      const verdict = isKnown ? null : await alone(this.#lock, () => entered.check())
      if (verdict && !verdict.ok) {
        this.#write({ ...head, status: 'wrong', note: verdict.problem })
        console.log(`WRONG ${keyOf(head)}: ${verdict.problem}`)
        return
      }
      this.#right.add(known)
      const times = await alone(this.#lock, () => timesOf(entered))
      if (this.has(head)) this.#again(head, times.median!)
      else {
        this.#write({ ...head, status: 'ok', ...times })
        this.#times.set(keyOf(head), times.median!)
      }
    } catch (error) {
      this.#write({ ...head, status: 'failed', note: messageOf(error) })
      if (isLoss(error)) {
        console.log(`LOST ${keyOf(head)}: ${messageOf(error)}`)
        process.exit(75)
      }
    } finally {
      try {
        running?.free()
      } catch {
        // After a fault nothing can be given back.
      }
    }
  }
}

/** What a user gets who chooses nothing, where that is asked for. */
function standards(suite: string, width: number): readonly Candidate[] {
  const { standard } = fieldOf(suite, [], widthValues(width))
  return standard !== null && process.argv.includes('--standard') ? [parseCandidate(standard)] : []
}

/** Which pool a case sees: the same in every run. */
async function collect(kind: Kind, suites: readonly string[], s: Session, into: Collection): Promise<void> {
  const device = await openDevice(kind, s)
  device.times = false
  const { widths } = s.options
  const perCase = count('pool', 20)
  const listed = count('listed', Number.MAX_SAFE_INTEGER)
  const [share = 0, shares = 1] = (option('share') ?? '0/1').split('/').map(Number)
  // Schedules with one format are in one share, which then brings matrices into it once.
  const numbers = new Map<string, number>()
  const isMine = (c: Candidate): boolean => {
    const name = `${c.kernel} ${c.schedule}`
    const number = numbers.get(name) ?? numbers.size
    numbers.set(name, number)
    return number % shares === share
  }
  const only = (option('only') ?? '')
    .split(';')
    .filter((t) => t !== '')
    .map((t) => parseCandidate(t))
  const peers = process.argv.includes('--peers') && kind === 'cuda'
  const start = performance.now()
  for await (const A of s.matrices()) {
    console.log(
      `${((performance.now() - start) / 1000).toFixed(0)} s, ${into.count} measured, ${into.repeated()}; ${describe(A)}`,
    )
    for (const suite of suites) {
      const operation = OPERATIONS[suite]!
      const formats = new Formats()
      const there = peers ? (await s.cusparse()).upload(A) : null
      try {
        for (const width of operation.widths ?? widths) {
          if (s.late()) return
          const head = { device: kind, chip: device.device.name, suite, data: A.name, width }
          const seed = seedOf(`${A.name} ${width}`)
          const drawn = only.length === 0 ? poolOf(suite, kind, width, { count: perCase, listed, seed }) : []
          const pool = [...standards(suite, width), ...only.filter((c) => c.kernel === suite), ...drawn]
          const open = pool.filter((c) => isMine(c) && !into.has({ ...head, candidate: c.text }))
          if (open.length === 0) continue
          const operands = operation.of(A, width)
          // The first comes again at the end: the same kernel twice says what the times are worth.
          for (const candidate of [...open, open[0]!]) {
            if (s.late()) return
            const named = { ...head, candidate: candidate.text }
            const entered = operands.ours(device, candidate, formats)
            const compiled = await device.ready(candidate).catch((error: unknown) => messageOf(error))
            if (typeof compiled !== 'string') await into.one(named, entered)
          }
          if (!there) continue
          const libraries = await operands.peers(s, there)
          for (const c of libraries.contestants)
            if (!into.has({ ...head, candidate: c.name })) await into.one({ ...head, candidate: c.name }, c)
          ;(await s.stream()).free(...libraries.memory)
        }
      } finally {
        if (there) (await s.cusparse()).release(there)
        await formats.free()
      }
    }
  }
}

const kind = (option('device') ?? 'cpu') as Kind
const suites = list('suites', Object.keys(OPERATIONS).join(','))
for (const suite of suites)
  if (!OPERATIONS[suite]) throw new Error(`there is no suite ${suite}: ${Object.keys(OPERATIONS)}`)
const session = new Session(
  {
    data: option('data') ?? 'data',
    quick: false,
    minutes: Number(option('minutes') ?? 10),
    json: undefined,
    schedules: [],
    matrices: list('matrices', ''),
    widths: list('widths', '32,128,512').map(Number),
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
  },
  undefined,
)
try {
  const out = option('out')
  if (out === undefined) throw new Error('--out FILE.jsonl says where what is measured goes')
  const collection = new Collection(out)
  await collect(kind, suites, session, collection)
  console.log(collection.repeated())
} finally {
  await session.close()
}
