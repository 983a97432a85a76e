/** Sampled dense × dense, f32, against cuSPARSE. */
import { fieldOf, widthValues } from '../candidates.ts'
import { compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { ExpectedSamples } from '../expected.ts'
import type { Csr } from '../matrix.ts'
import { normals } from '../random.ts'
import type { Session } from '../session.ts'
import { Formats } from './products.ts'
import { cusparseSamples, type Factors, leastSamples, ourSamples } from './samples.ts'
import { describe } from './spmm.ts'

export async function sddmm(s: Session): Promise<void> {
  for (const source of s.sources()) {
    if (s.late()) return
    const A = await source.read()
    s.say(describe(A))
    await matrix(s, A)
  }
}

/** Both from one list of numbers, a row and a column never the same ones. */
export const factors = (A: Csr, depth: number): Factors => ({
  X: normals(A.rows * depth),
  Y: normals(A.columns * depth, A.rows * depth + 1),
  depth,
})

async function matrix(s: Session, A: Csr): Promise<void> {
  const [ours, stream, library] = [await s.cuda(), await s.stream(), await s.cusparse()]
  const formats = new Formats()
  const slots = new Map<string, Promise<readonly Int32Array[]>>()
  const there = library.upload(A)
  try {
    for (const depth of s.options.widths) {
      if (s.late()) return
      if (s.has('sddmm', A.name, `K = ${depth}`)) continue
      const field = fieldOf('sddmm', s.options.schedules, widthValues(depth))
      const both = factors(A, depth)
      const expected = new ExpectedSamples(A, both.X, both.Y, depth)
      const [x, y] = [stream.upload(both.X), stream.upload(both.Y)]
      const entries = await compete(
        [
          ...(await cusparseSamples(s, there, x, y, depth, expected)),
          ...field.candidates.map((c) => ourSamples(ours, c, formats, slots, A, both, expected)),
        ],
        field.standard,
        s,
      )
      stream.free(x, y)
      const least = leastSamples(A, depth)
      await s.done({
        suite: 'sddmm',
        data: A.name,
        at: `K = ${depth}`,
        entries,
        checked: expected.checked,
        floor: s.ceilings ? floor(s.ceilings, least, 'f32') : null,
        flops: least.flops,
        standard: field.standard,
      })
    }
  } finally {
    library.release(there)
    await formats.free()
  }
}
