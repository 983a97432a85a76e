/** What contestants have in common: one of ours is bound and checked, a library is called on poisoned memory. */
import type { Memory, PeerStream } from '../peers/stream.ts'
import { widen } from './blocks.ts'
import type { Contestant, Running } from './case.ts'
import { type ExpectedProduct, PRECISION, type Verdict } from './expected.ts'
import type { OurRun } from './ours.ts'
import type { Session } from './session.ts'
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
      free: () => run.free(),
    }
  },
})

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
  expected: ExpectedProduct,
  factors: 'f32' | 'tf32' = 'f32',
): Promise<Verdict> {
  const got = await run.values(run.output.name)
  if (got instanceof Uint16Array) return expected.check(widen(got), PRECISION.f16)
  return expected.check(got instanceof Float32Array ? got : Float32Array.from(got), PRECISION[factors])
}

/** A run's facts with the types of its two factors and its result. */
export const withTypes = (run: OurRun): Facts => {
  const [a, b] = run.inputs
  return { ...run.facts, types: `${a?.dtype} × ${b?.dtype} → ${run.output.dtype}` }
}
