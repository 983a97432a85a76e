/** Operands that are several tiles of a memory in registers: slots count through the tiles in the order in which they lie. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { InstructionVerifier } from '../../src/instruction-tests/instruction-verify.ts'
import { devices } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { diagnosticOf } from '../support/refusal.ts'

/** Tiles of a × b: `planes` of them times p × q in a plane. */
interface Shape {
  readonly planes: number
  readonly p: number
  readonly q: number
  readonly a: number
  readonly b: number
}

/** An operand of tiles that is copied to memory, slot by slot: by rows of tiles, or else by columns. */
const copies = ({ planes, p, q, a, b }: Shape, byRows = true): string => `
memory tile: f32[${a}, ${b}] in register of 1 threads {
  element (lane, slot) -> (slot / ${b}, slot % ${b})
}
instr copy(D: f32[${planes}, ${p * a}, ${q * b}] in global, S: f32[${planes}, ${p * a}, ${q * b}] in tile) {
  iterate copy [t, i, j] as SSS { D[t, i, j] = S[t, i, j] }
  js \`$[for s from 0 to ${planes * p * q - 1}: $[for k from 0 to ${a * b - 1}:
    $D[$D.index(s / ${p * q}, ${byRows ? `s / ${q} % ${p}` : `s % ${p}`} * ${a} + k / ${b}, ${byRows ? `s % ${q}` : `s / ${p} % ${q}`} * ${b} + k % ${b})] = $S[${a * b} * s + k];]]\`
}`

describe('operands of several tiles', () => {
  const verifier = new InstructionVerifier(() => devices.cpu())
  beforeAll(() => verifier.device())
  afterAll(() => verifier[Symbol.asyncDispose]())
  const verdict = (text: string) => verifier.verify(parseProgram(text).instructions.get('copy')!)

  test('order their slots tile by tile, the last dimension first', async () => {
    const few = fc.integer({ min: 1, max: 3 })
    const shapes = fc.record({ planes: few, p: few, q: few, a: few, b: few })
    await fc.assert(
      fc.asyncProperty(shapes, async (shape) => {
        expect(await verdict(copies(shape))).toEqual({ kind: 'right', why: [] })
      }),
      { numRuns: runs(12) },
    )
  })

  test('in another order are detected', async () => {
    const shape = { planes: 1, p: 2, q: 3, a: 2, b: 1 }
    expect((await verdict(copies(shape, false))).kind).toBe('wrong')
  })

  test('must be full tiles', () => {
    const text = (shape: string): string => `
memory tile: f32[4, 4] in register of 4 threads {
  element (lane, slot) -> (slot, lane)
}
instr sum(D: f32[4] in global, C: f32[${shape}] in tile) by 4 threads {
  iterate sum [i, j] as SR { D[i] += C[i, j] }
  cuda \`sum($C[0]);\`
}`
    expect(diagnosticOf(() => parseProgram(text('4, 6')))).toMatchObject({
      code: 'check/instr-operand',
      message: 'C is f32[4, 6], and a tile of tile is f32[4, 4]',
      expected: 'tiles of f32 that make up [4, 6]',
    })
    expect(diagnosticOf(() => parseProgram(text('4')))).toMatchObject({ code: 'check/instr-operand' })
    expect(parseProgram(text('4, 8')).instructions.has('sum')).toBe(true)
  })
})

const MEMORIES = `
memory tile: f32[4, 4] in register of 4 threads {
  element (lane, slot) -> (slot, lane)
}
memory tile_rows: f32[4] in register of 4 threads replicated {
  element (lane, slot) -> (slot)
}`

/** The calls of an instruction that sums rows of 8 × 12 elements, of which threads hold tiles of 4 × 4. */
function calls(y: string, A: string, body: string, slots: readonly [number, number], steps: string) {
  const text = parseProgram(`${MEMORIES}
instr sum(y: f32[${y}] in tile_rows, A: f32[${A}] in tile) by 4 threads {
  iterate ${body} }
  cuda \`sum($(for k from 0 to ${slots[0] - 1}: $y[k]), $(for k from 0 to ${slots[1] - 1}: $A[k]));\`
}
kernel rows(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
}
schedule rows.tested {
  require m == 8
  require n % 12 == 0
  split i by 4 -> (it, ir)
  split j by 12 -> (jo, ji)
  ${steps}
}`)
    .kernel('rows')
    .schedule('tested')
    .emit('cuda')[0]!.text
  return [...text.matchAll(/sum\((.*)\);/g)].map((c) => c[1])
}

describe('tensorize gives loops over tiles to one instruction', () => {
  const held = 'cache_write y at jo in tile_rows\ncache_read A at jo in tile'
  const slots = (name: string, first: number, count: number): string =>
    Array.from({ length: count }, (_, k) => `${name}_register_${first + k}`).join(', ')

  test('along dimensions before those of the tile', () => {
    const steps = `split ji by 4 -> (jt, jr)\nreorder (jo, it, jt, ir, jr)\n${held}\ntensorize jt with sum`
    const found = calls('4', '3, 4, 4', 'sum [t, i, j] as RSR { y[i] += A[t, i, j]', [4, 12], steps)
    expect(found).toEqual([0, 1].map((r) => `${slots('y', 4 * r, 4)}, ${slots('A', 12 * r, 12)}`))
  })

  test('of what it writes', () => {
    const steps = `split ji by 4 -> (jt, jr)\nreorder (jo, jt, it, ir, jr)\n${held}\ntensorize it with sum`
    const found = calls('2, 4', '2, 4, 4', 'sum [t, i, j] as SSR { y[t, i] += A[t, i, j]', [8, 8], steps)
    expect(found).toEqual([0, 1, 2].map((c) => `${slots('y', 0, 8)}, ${slots('A', 8 * c, 8)}`))
  })

  test('side by side along the tile’s last dimension', () => {
    const steps = `reorder (jo, it, ir, ji)\n${held}\ntensorize ir with sum`
    const found = calls('4', '4, 12', 'sum [i, j] as SR { y[i] += A[i, j]', [4, 12], steps)
    expect(found).toEqual([0, 1].map((r) => `${slots('y', 4 * r, 4)}, ${slots('A', 12 * r, 12)}`))
    const more = () => calls('4', '4, 8', 'sum [i, j] as SR { y[i] += A[i, j]', [4, 8], steps)
    expect(diagnosticOf(more)).toMatchObject({ code: 'schedule/wrong-extent' })
  })
})
