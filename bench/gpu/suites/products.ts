/** Sparse × dense in f32, and the same on WebGPU: our contestants and cuSPARSE's. */
import { dense } from '../../../src/node.ts'
import { CSR_ALGORITHMS, type CsrMemory } from '../../peers/cusparse.ts'
import type { Memory } from '../../peers/stream.ts'
import type { Candidate } from '../candidates.ts'
import type { Contestant } from '../case.ts'
import type { Least } from '../ceilings.ts'
import { type ExpectedProduct, PRECISION } from '../expected.ts'
import { type Csr, nonzeros } from '../matrix.ts'
import { type Built, inputs, type OurDevice, outputOf, structured } from '../ours.ts'
import type { Session } from '../session.ts'
import { PeerRun } from '../timing.ts'

/** Formats of one matrix, each built once for all widths. */
export class Formats {
  readonly #built = new Map<string, Promise<Built>>()

  of(key: string, build: () => Promise<Built>): Promise<Built> {
    let known = this.#built.get(key)
    if (!known) {
      known = build()
      this.#built.set(key, known)
    }
    return known
  }

  async free(): Promise<void> {
    for (const b of this.#built.values())
      try {
        ;(await b).parts?.free()
      } catch {
        // It was never built, or its device is gone; the case says so.
      }
    this.#built.clear()
  }
}

/** C = A B under one schedule. */
export function ourProduct(
  on: OurDevice,
  candidate: Candidate,
  formats: Formats,
  A: Csr,
  B: Float32Array,
  width: number,
  expected: ExpectedProduct,
  label = candidate.text,
): Contestant {
  return {
    name: label,
    side: 'ours',
    async enter() {
      const ready = await on.ready(candidate)
      const { source } = ready
      const tensor = structured(source, [A.rows, A.columns], A, A.values, 'f32')
      const built = await formats.of(candidate.text, () => on.build(ready, tensor))
      const operand = inputs(source)[1]
      if (!operand) throw new Error(`${source.name} has one input`)
      const run = await on.prepare(ready, built, tensor, {
        [operand.name]: dense([A.columns, width], B, 'f32'),
      })
      return {
        facts: run.facts,
        check: async () =>
          expected.check((await run.values(outputOf(source).name)) as Float32Array, PRECISION.f32),
        scout: () => run.scout(),
        measure: (us) => run.measure(us),
        free: () => run.free(),
      }
    },
  }
}

/** cuSPARSE's algorithms on arrays that are on the device already. */
export async function cusparseProducts(
  s: Session,
  A: CsrMemory,
  B: Memory,
  C: Memory,
  width: number,
  expected: ExpectedProduct,
): Promise<Contestant[]> {
  const [stream, library] = [await s.stream(), await s.cusparse()]
  const { rows, columns } = A.of
  return (Object.keys(CSR_ALGORITHMS) as (keyof typeof CSR_ALGORITHMS)[]).map((algorithm) => ({
    name: `cuSPARSE ${algorithm}`,
    side: 'peer',
    async enter() {
      const operands = [
        { memory: B, rows: columns, columns: width },
        { memory: C, rows, columns: width },
      ] as const
      const call = library.spmm(A, ...operands, algorithm)
      const run = new PeerRun(stream, call.enqueue)
      stream.fill(C, 0xff)
      run.run()
      return {
        facts: { 'preprocessing ms': call.preprocessing, workspace: call.workspace },
        check: async () => expected.check(stream.download(C, new Float32Array(rows * width)), PRECISION.f32),
        scout: async () => run.scout(),
        measure: async (us) => run.measure(us),
        free: () => call.free(),
      }
    },
  }))
}

/** Arrays once: the matrix, the dense operand, the result. */
export const leastProduct = (A: Csr, width: number): Least => ({
  flops: 2 * nonzeros(A) * width,
  bytes: 8 * nonzeros(A) + 4 * (A.rows + 1) + 4 * width * (A.rows + A.columns),
})
