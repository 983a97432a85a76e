/** Maps and inverses of integer arithmetic that nobody thought of: devices make the arrays that the host makes, or say the same. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { conversionPlan, uploadResident } from '../../src/storage/engines/device/index.ts'
import { convertTensor } from '../../src/storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { givenFor, matrix, written } from '../formats/user-formats.ts'
import { runs } from '../support/cases.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { diagnosticOf } from '../support/refusal.ts'
import { DEVICES, opened } from './devices.ts'

const { expression } = fc.letrec<{ expression: string; condition: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.constantFrom('x', 'x', '0', '1', '2', '3', '7', 'size(i)', 'size(j)'),
    fc
      .tuple(tie('expression'), fc.constantFrom('+', '-', '*', '/', '%'), tie('expression'))
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
    fc
      .tuple(tie('expression'), fc.constantFrom('/', '%'), fc.integer({ min: 1, max: 5 }))
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
    fc
      .tuple(fc.constantFrom('min', 'max'), tie('expression'), tie('expression'))
      .map(([f, a, b]) => `${f}(${a}, ${b})`),
    fc
      .tuple(tie('condition'), tie('expression'), tie('expression'))
      .map(([c, a, b]) => `select(${c}, ${a}, ${b})`),
  ),
  condition: fc
    .tuple(tie('expression'), fc.constantFrom('<', '>=', '==', '!='), tie('expression'))
    .map(([a, op, b]) => `${a} ${op} ${b}`),
}))

/** Each row turned by what an expression says of it; `halves`: as two tensors, whose launches are one where a device fuses them. */
const turned = (e: string, halves: boolean): string => {
  const by = (x: string): string => `(${e.replace(/\bx\b/g, x)}) % size(j)`
  return `format f() over (i, j) {
  axis io = sparse_variable(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, (j + ${by('i')}) % size(j))
  inverse (io, jo) -> (io, (jo + size(j) - ${by('io')}) % size(j))
}
${halves ? 'format h over (i, j) {\n  partition i into 2 as k {\n    part f()\n  }\n}' : ''}`
}

const tensors: fc.Arbitrary<CoordTensor> = fc
  .tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 5 }))
  .chain(([m, n]) =>
    fc.uniqueArray(fc.nat(m * n - 1), { maxLength: 9 }).map((ps) =>
      matrix(
        [m, n],
        ps.map((p, k) => [Math.floor(p / n), p % n, k + 1]),
      ),
    ),
  )
  .map((t) => ({ ...t, values: Float32Array.from(t.values!), dtype: 'f32' }))

describe.each(DEVICES)('on $name', ({ kind, open }) => {
  const on = opened(open)
  test('rows that are permuted by arithmetic on coordinates have the positions of the host', async () => {
    await fc.assert(
      fc.asyncProperty(tensors, expression, fc.boolean(), async (tensor, e, halves) => {
        const text = turned(e, halves)
        const given = givenFor(tensor.shape)
        let host: ReturnType<typeof arraysOf> | null = null
        const refused = diagnosticOf(() => {
          host = arraysOf(convertTensor(tensor, written(text), given))
        })
        const from = await uploadResident(on.device, tensor)
        try {
          const there = await conversionPlan(on.device, written(text)).run(from, given)
          expect(arraysOf(await there.download())).toEqual(host)
          there.free()
        } catch (e) {
          if (!(e instanceof SptError)) throw e
          expect(e.diagnostics[0]!.code).toBe(refused?.code)
        } finally {
          from.free()
        }
      }),
      {
        numRuns: runs(kind === 'webgpu' ? 2 : 6),
        examples: [
          [
            {
              ...matrix(
                [2, 3],
                [
                  [0, 0, 1],
                  [1, 1, 2],
                ],
              ),
              values: Float32Array.of(1, 2),
              dtype: 'f32',
            },
            '(3 - x) / 2 / 3',
            true,
          ],
        ],
      },
    )
  })
})
