/** Sampled dense × dense in f32: our contestants and cuSPARSE's, which leaves the sparse values out. */
import { dense } from '../../../src/node.ts'
import type { CsrMemory } from '../../peers/cusparse.ts'
import type { Memory } from '../../peers/stream.ts'
import type { Candidate } from '../candidates.ts'
import type { Contestant } from '../case.ts'
import type { Least } from '../ceilings.ts'
import { type ExpectedSamples, PRECISION } from '../expected.ts'
import { type Csr, nonzeros } from '../matrix.ts'
import { inputs, type OurDevice, outputOf, slotsOf, structured } from '../ours.ts'
import type { Session } from '../session.ts'
import { PeerRun } from '../timing.ts'
import type { Formats } from './products.ts'

/** Where elements lie in formats of one matrix, found once for all depths. */
export type Slots = Map<string, Promise<readonly Int32Array[]>>

export interface Factors {
  readonly X: Float32Array
  readonly Y: Float32Array
  readonly depth: number
}

/** C = A ∘ X Yᵀ under one schedule; without A's values where the kernel has none. */
export function ourSamples(
  on: OurDevice,
  candidate: Candidate,
  formats: Formats,
  slots: Slots,
  A: Csr,
  { X, Y, depth }: Factors,
  expected: ExpectedSamples,
  label = candidate.text,
): Contestant {
  return {
    name: label,
    side: 'ours',
    async enter() {
      const ready = await on.ready(candidate)
      const { source } = ready
      const given = inputs(source)
      const output = outputOf(source)
      const weighted = given.length === 3
      const [x, y] = given.slice(-2)
      if (!x || !y) throw new Error(`${source.name} has too few inputs`)
      if (!weighted) throw new Error(`${source.name} has no sparse input`)
      const tensor = structured(source, [A.rows, A.columns], A, A.values, 'f32')
      const built = await formats.of(candidate.text, () => on.build(ready, tensor))
      const run = await on.prepare(ready, built, tensor, {
        [x.name]: dense([A.rows, depth], X, 'f32'),
        [y.name]: dense([A.columns, depth], Y, 'f32'),
      })
      const where = async (): Promise<readonly Int32Array[] | null> => {
        if (!built.parts) return null
        let known = slots.get(candidate.text)
        if (!known) {
          known = slotsOf(on, ready, tensor, nonzeros(A))
          slots.set(candidate.text, known)
        }
        return known
      }
      return {
        facts: run.facts,
        check: async () =>
          expected.check(await run.elements(output.name, nonzeros(A), await where()), PRECISION.f32, true),
        scout: () => run.scout(),
        measure: (us) => run.measure(us),
        free: () => run.free(),
      }
    },
  }
}

export async function cusparseSamples(
  s: Session,
  A: CsrMemory,
  X: Memory,
  Y: Memory,
  depth: number,
  expected: ExpectedSamples,
): Promise<Contestant[]> {
  const [stream, library] = [await s.stream(), await s.cusparse()]
  const { rows, columns, nonzeros: count } = A.of
  return (['transposed', 'by columns'] as const).map((how) => ({
    name: `cuSPARSE, Y ${how}`,
    side: 'peer',
    async enter() {
      const C = { ...A, values: stream.alloc(4 * count) }
      const call = library.sddmm(
        { memory: X, rows, columns: depth },
        { memory: Y, rows: columns, columns: depth },
        C,
        how,
      )
      const run = new PeerRun(stream, call.enqueue)
      // Numbers, and wrong ones: the library multiplies what is there by zero.
      stream.fill(C.values, 0x41)
      run.run()
      return {
        facts: { 'preprocessing ms': call.preprocessing, workspace: call.workspace },
        check: async () =>
          expected.check(stream.download(C.values, new Float32Array(count)), PRECISION.f32, false),
        scout: async () => run.scout(),
        measure: async (us) => run.measure(us),
        free: () => {
          call.free()
          stream.free(C.values)
        },
      }
    },
  }))
}

/** Arrays once: the pattern with values, both factors, the result. */
export const leastSamples = (A: Csr, depth: number): Least => ({
  flops: 2 * nonzeros(A) * depth,
  bytes: 12 * nonzeros(A) + 4 * (A.rows + 1) + 4 * depth * (A.rows + A.columns),
})
