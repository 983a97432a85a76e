/** What contestants have in common: one of ours is bound and checked, a library is called on poisoned memory. */
import { type CoordTensor, coords, type StoredTensor, type Tensor } from '../../src/node.ts'
import type { Memory, PeerStream } from '../peers/stream.ts'
import { widen } from './blocks.ts'
import type { Candidate } from './candidates.ts'
import type { Contestant, Running } from './case.ts'
import { inputs, structured } from './declared.ts'
import { type ExpectedProduct, PRECISION, type Verdict } from './expected.ts'
import type { Formats } from './formats.ts'
import { type Csr, nonzeros } from './matrix.ts'
import type { OurDevice, OurRun, Ready } from './ours.ts'
import type { Session } from './session.ts'
import { slotsOf } from './slots.ts'
import { PeerRun } from './timing.ts'

type Facts = NonNullable<Running['facts']>

/** One of ours; `bind` runs it once, `check` reads what it has written. */
export const ours = (
  name: string,
  bind: () => Promise<OurRun>,
  check: (run: OurRun) => Promise<Verdict>,
  facts: (run: OurRun) => Facts = (run) => run.facts,
): Contestant => ({
  name,
  side: 'ours',
  async enter() {
    const run = await bind()
    return {
      facts: facts(run),
      check: () => check(run),
      scout: () => run.scout(),
      measure: (us) => run.measure(us),
      samples: (options) => run.samples(options),
      free: () => run.free(),
    }
  },
})

/** A matrix by rows in the format of a candidate, with the kernel's other inputs in order; it has run once. */
export const bindRows = (
  on: OurDevice,
  candidate: Candidate,
  formats: Formats,
  A: Csr,
  others: readonly Tensor[],
): Promise<OurRun> => bindFirst(on, candidate, formats, (ready) => rowsFor(ready, A), others)

/** The same for a first input that is made for the kernel. `held`: coordinates that sets have which its format takes. */
export async function bindFirst(
  on: OurDevice,
  candidate: Candidate,
  formats: Formats,
  make: (ready: Ready) => CoordTensor | StoredTensor,
  others: readonly Tensor[],
  params: Readonly<Record<string, number>> = {},
  held?: () => readonly Int32Array[],
): Promise<OurRun> {
  const asked = await on.ready(candidate)
  const { source } = asked
  const tensor = make(asked)
  const [first, ...names] = inputs(source).map((b) => b.name)
  if (first === undefined || names.length < others.length)
    throw new Error(`${source.name} has too few inputs`)
  const rest: Record<string, Tensor> = Object.fromEntries(others.map((t, k) => [names[k]!, t]))
  const ready = await on.decided(asked, { [first]: tensor, ...rest }, params)
  const sets = new Map(setsOf(ready, first).map((name) => [name, held?.() ?? []]))
  for (const [name, coordinates] of sets) rest[name] = coords(tensor.shape, coordinates, null)
  const built = await formats.of(ready.compiled, () => on.build(ready, tensor, sets))
  return on.prepare(ready, built, tensor, rest, params)
}

/** The output of a run of `bindRows`, where it has the structure of A, in the order of A's nonzeros. */
export async function elementsOf(
  run: OurRun,
  on: OurDevice,
  formats: Formats,
  A: Csr,
): Promise<ArrayLike<number>> {
  const { ready, built, output } = run
  const find = (): ReturnType<typeof slotsOf> => slotsOf(on, ready, rowsFor(ready, A), nonzeros(A))
  const slots = built.parts ? await formats.slots(ready.compiled, find) : null
  return run.elements(output.name, nonzeros(A), slots)
}

/** Sets that the format of a tensor takes. */
const setsOf = ({ compiled }: Ready, name: string): string[] =>
  compiled.compilation.kernel.reformats
    .filter((r) => r.buffers.some((b) => b.name === name))
    .flatMap((r) => r.instance.given.flatMap((g) => (g.kind === 'set' ? [g.name] : [])))

const rowsFor = ({ source }: Ready, A: Csr): StoredTensor =>
  structured(source, [A.rows, A.columns], A, A.values, 'f32')

/** A library's call, ready to be repeated. */
export interface PeerCall {
  readonly enqueue: () => void
  readonly output: Memory
  /** Bytes that the output is filled with before the call that is checked; NaN if left out. */
  readonly poison?: number
  readonly facts?: Facts
  check(): Verdict
  free(): void
}

/** A library's routine; `start` brings the data there. */
export const peer = (
  s: Session,
  name: string,
  start: (stream: PeerStream) => PeerCall | Promise<PeerCall>,
): Contestant => ({
  name,
  side: 'peer',
  async enter() {
    const stream = await s.stream()
    const call = await start(stream)
    try {
      const run = new PeerRun(stream, call.enqueue)
      stream.fill(call.output, call.poison ?? 0xff)
      run.run()
      return {
        ...(call.facts ? { facts: call.facts } : {}),
        check: async () => call.check(),
        scout: async () => run.scout(),
        measure: async (us) => run.measure(us),
        free: () => call.free(),
      }
    } catch (error) {
      call.free()
      throw error
    }
  },
})

/** Whether a dense product in the type of its output is right; `factors`: how products are taken where sums are f32. */
export async function checkProduct(
  run: OurRun,
  expected: Pick<ExpectedProduct, 'check'>,
  factors: 'f32' | 'tf32' = 'f32',
): Promise<Verdict> {
  const { name, dtype } = run.output
  const got = await run.values(name)
  if (got instanceof Uint16Array) {
    const half = dtype === 'bf16' ? 'bf16' : 'f16'
    return expected.check(widen(got, half), PRECISION[half])
  }
  return expected.check(got instanceof Float32Array ? got : Float32Array.from(got), PRECISION[factors])
}

/** A run's facts with the types of its two factors and its result. */
export const withTypes = (run: OurRun): Facts => {
  const [a, b] = run.inputs
  return { ...run.facts, types: `${a?.dtype} × ${b?.dtype} → ${run.output.dtype}` }
}
