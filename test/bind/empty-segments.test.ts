/** Ready-made arrays may store coordinates with nothing under them: kernels visit these, and so does the reference. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { StoredTensor } from '../../src/storage/tensor.ts'
import { runs } from '../support/cases.ts'

const EXTENT = 6

const text = (root: string, inner: string): string => `kernel k(m: size) {
  axis i = ${root}
  axis j = ${inner}
  axis l = sparse_variable(j, m)
  buffer A: i32[i, j, l] in
  buffer C: i32[3] out
  iterate zero [] { C[0] = 0 }
  iterate rows [i] as R { C[0] += 3 * i + 1 }
  iterate pairs [i, j] as RR { C[1] += 5 * i + 3 * j + 1 }
  iterate whole [i, j, l] as RRR { C[2] += A[i, j, l] * (i + j + l + 1) }
}`

const kernels = ['sparse_variable(m)', 'dense_fixed(m)'].flatMap((root) =>
  ['sparse_variable(i, m)', 'sparse_fixed(i, m, 2)'].map((inner) => text(root, inner)),
)

/** Segments of a level under `parents`: ascending coordinates, or `width` of them with padding at the end. */
function level(sizes: readonly number[], parents: number, width: number | null) {
  const indptr = [0]
  const indices: number[] = []
  for (let p = 0; p < parents; p++) {
    const n = Math.min(sizes[p % sizes.length]!, width ?? EXTENT)
    for (let c = 0; c < n; c++) indices.push((2 * c + (p % 2)) % EXTENT)
    for (let c = n; c < (width ?? 0); c++) indices.push(EXTENT)
    indptr.push(indices.length)
  }
  return { indptr: Int32Array.from(indptr), indices: Int32Array.from(indices) }
}

test('coordinates without children are visited by the reference too', async () => {
  const device = createCpuDevice()
  const compiled = await Promise.all(
    kernels.map((k) =>
      parseProgram(k.replace('i32[3]', 'i32[c]').replace('axis i', 'axis c = dense_fixed(3)\n  axis i'))
        .kernel()
        .build(device),
    ),
  )
  const few = fc.array(fc.nat(3), { minLength: 1, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(fc.nat(kernels.length - 1), fc.tuple(few, few, few), async (which, [a, b, c]) => {
      const dense = kernels[which]!.includes('i = dense_fixed')
      const i = level(a, 1, null)
      const rows = dense ? EXTENT : i.indices.length
      const fixed = kernels[which]!.includes('sparse_fixed')
      const j = level(b, rows, fixed ? 2 : null)
      const l = level(c, j.indices.length, null)
      // Nothing lies under padding.
      const A: StoredTensor = {
        kind: 'stored',
        shape: [EXTENT, EXTENT, EXTENT],
        arrays: {
          ...(dense ? {} : { i }),
          j: fixed ? { indices: j.indices } : j,
          l: underPadding(l, j.indices),
        },
        values: null,
        dtype: 'i32',
      }
      const values = Int32Array.from(A.arrays.l!.indices!, (_, k) => k + 1)
      const prepared = await compiled[which]!.bind({ A: { ...A, values }, m: EXTENT })
      await prepared.run()
      expect((await prepared.verify()).problems).toEqual([])
      prepared.free()
    }),
    { numRuns: runs(60) },
  )
})

function underPadding({ indptr, indices }: ReturnType<typeof level>, above: Int32Array) {
  const starts = [0]
  const kept: number[] = []
  above.forEach((c, p) => {
    if (c !== EXTENT) kept.push(...indices.subarray(indptr[p]!, indptr[p + 1]!))
    starts.push(kept.length)
  })
  return { indptr: Int32Array.from(starts), indices: Int32Array.from(kept) }
}
