/** Tiles that threads hold together, without and with instructions: what each thread does, and the text of calls. */
import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { mistaken, movable } from '../../bench/mistaken-instructions.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { verifyPass } from '../../src/api/stages/stage-verifier.ts'
import { instructionTest, packedOperand } from '../../src/instruction-tests/instruction-test.ts'
import { interpret } from '../../src/interpret/stage2.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import { type Kernel, load } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { FRAGMENTS, IN_SHARED, scheduled, TILED } from './support.ts'

const SCALE = `
kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer C: f32[i, j] out
  iterate scale [i, j] as SS { C[i, j] = A[i, j] * 2 + 1 }
}`

/** C of the plan, as the threads of a device would compute it. */
function planned(k: Kernel, m: number, n: number): number[] {
  const A = Array.from({ length: m * n }, (_, e) => e)
  const C = new Array<number>(m * n).fill(Number.NaN)
  const plan = k.compilation.observe(verifyPass)
  const buffers = new Map([
    ['A', A],
    ['C', C],
  ])
  const sizes = new Map([
    ['m', m],
    ['n', n],
  ])
  interpretPlan(plan, buffers, sizes)
  return C
}

describe('loops over the elements of a tile', () => {
  const doubled = (m: number, n: number): number[] => Array.from({ length: m * n }, (_, e) => 2 * e + 1)

  test('become loops over the slots of each thread', () => {
    const k = scheduled(
      `require m % 8 == 0
       require n % 8 == 0
       tile (i, j) by (8, 8) -> (io, jo, ir, jr)
       bind io to block.y, jo to block.x
       cache_read A at jo in c_tile
       cache_write C at jo in c_tile`,
      SCALE,
    )
    expect(planned(k, 16, 24)).toEqual(doubled(16, 24))
    // Each of the 32 threads has two elements of the tile.
    expect(k.emit('cuda')[0]!.text).toContain('__launch_bounds__(32)')
  })

  test('several tiles in a copy, with a guarded remainder', () => {
    const k = scheduled(
      `tile (i, j) by (16, 16) -> (io, jo, ir, jr)
       bind io to block.y, jo to block.x
       cache_read A at jo in c_tile
       cache_write C at jo in c_tile`,
      SCALE,
    )
    for (const [m, n] of [
      [16, 16],
      [13, 37],
      [1, 1],
    ] as const)
      expect(planned(k, m, n), `${m} × ${n}`).toEqual(doubled(m, n))
  })

  test('a shared memory with its own addressing', () => {
    const steps = (memory: string): string =>
      `require m % 8 == 0
       require n % 64 == 0
       tile (i, j) by (8, 64) -> (io, jo, ir, jr)
       bind io to block.y, jo to block.x, jr to thread.x
       cache_read A at jo in ${memory}`
    const swizzled = `memory swizzled: f32[8, 32] in shared { address (i, j) -> i * 33 + bit_xor(j, i) }`
    const k = parseProgram(`${swizzled}${SCALE}\nschedule product.tested {\n${steps('swizzled')}\n}`)
      .kernel('product')
      .schedule('tested')
    expect(planned(k, 16, 128)).toEqual(doubled(16, 128))
    // Two tiles of 7 · 33 + 32 elements, rounded up to the alignment.
    expect(k.emit('cuda')[0]!.text).toContain('A_shared[526]')
  })

  test('a shared memory of one dimension', () => {
    const spread = `memory spread: f32[8] in shared { address (i) -> 2 * i }`
    const vector = `
kernel product(n: size) {
  axis i = dense_fixed(n)
  buffer A: f32[i] in
  buffer C: f32[i] out
  iterate scale [i] as S { C[i] = A[i] * 2 + 1 }
}`
    const steps =
      'split i by 16 -> (io, ii)\nbind io to block.x, ii to thread.x\ncache_read A at io in spread'
    const k = parseProgram(`${spread}${vector}\nschedule product.tested {\n${steps}\n}`)
      .kernel('product')
      .schedule('tested')
    expect(planned(k, 1, 21)).toEqual(doubled(1, 21))
    // Steps of two within a tile, and none behind the last element of a tile.
    expect(k.emit('cuda')[0]!.text).toContain(' / 8 * 15 + 2 * (')
  })

  test('are rejected if threads would need elements of other threads', () => {
    const sums = `
kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate sum [i, j] as SR { C[i] += A[i, j] }
}`
    const k = scheduled(
      `require m % 8 == 0
       require n % 8 == 0
       tile (i, j) by (8, 8) -> (io, jo, ir, jr)
       bind io to block.y
       cache_read A at jo in c_tile`,
      sums,
    )
    expect(() => k.emit('cuda')).toThrow(/different threads hold/)
  })
})

describe('calls', () => {
  const copies = `\nsplit As.pt by 8 -> (pc, pv)\ntensorize pv with copy8`
  const text = (steps: string): string => scheduled(steps).emit('cuda')[0]!.text

  test('name registers, words, addresses and threads', () => {
    const said = text(`${TILED}${IN_SHARED}${FRAGMENTS}
      tensorize product.ir with multiply
      tensorize Ar.ir with read_a`)
    expect(said).toContain('multiply(Cr_0, Cr_1, Ar[0], Br[0], (int)threadIdx.x);')
    expect(said).toMatch(
      /read_a\(Ar\[0\], \(\(unsigned\)__cvta_generic_to_shared\(As\) \+ \(unsigned\)\(.*\) \* 2u\)\);/,
    )
    expect(said).toContain('unsigned Ar[1];')
    // A register of two halves, where no instruction fills them.
    expect(said).toMatch(/Br\[0 \/ 2\] = f32_to_f16x2\(.*\);/)
    expect(said).toContain('__align__(64) unsigned short As[256]')
  })

  test('that are asynchronous are committed and awaited once, before the barrier', () => {
    const said = text(`${TILED}${IN_SHARED}${FRAGMENTS}${copies}\ntensorize product.ir with multiply`)
    expect(said.match(/commit\(\);/g)).toHaveLength(1)
    const order = ['copy8(', 'commit();', 'wait(0);', '__syncthreads();', 'multiply(']
    const places = order.map((t) => said.indexOf(t))
    expect(places[0]).toBeGreaterThan(0)
    expect(places).toEqual([...places].sort((a, b) => a - b))
  })

  test('in a pipeline form groups, of which the latest may be in flight', () => {
    const said = text(`${TILED}${IN_SHARED.replace('shared', 'turned')}${FRAGMENTS}${copies}
      split Bs.jt by 8 -> (jc, jv)
      tensorize jv with copy8
      tensorize product.ir with multiply
      pipeline po by 3`)
    expect(said.match(/commit\(\);/g)).toHaveLength(3)
    expect(said.match(/wait\(1\);/g)).toHaveLength(2)
    expect(said).not.toContain('wait(0)')
  })
})

test('ordered computation continues into the next iteration, and is awaited after the loop', () => {
  const said = scheduled(`
    require m % 8 == 0
    require n % 8 == 0
    require k % 8 == 0
    tile (i, j) by (8, 8) -> (io, jo, ir, jr)
    split p by 8 -> (po, pr)
    reorder (io, jo, po, ir, jr, pr)
    bind io to block.y, jo to block.x
    cache_write C at jo in c_tile
    cache_read A at po in turned_8 -> As
    cache_read B at po in shared -> Bs
    split As.pr by 8 -> (ac, av)
    split Bs.jr by 8 -> (bc, bv)
    tensorize av with copy8
    tensorize bv with copy8
    tensorize product.ir with multiply_later
    pipeline po by 4`).emit('cuda')[0]!.text
  const loop = said.slice(said.indexOf('for (int po'))
  const events = [...loop.matchAll(/start\(|started|done\(\d\)|copy8\(|commit|wait\(\d\)|__sync\w+/g)]
  expect(events.map((m) => m[0]).slice(0, 11)).toEqual([
    ...['start(', 'started', 'done(1)', '__syncthreads', 'copy8(', 'copy8(', 'commit', 'wait(2)'],
    ...['__syncwarp', 'done(0)'],
  ])
  // Three iterations are copied ahead: all that there is memory for beside the one in use.
  expect(said.slice(0, said.indexOf('for (int po')).match(/commit\(\);/g)).toHaveLength(3)
})

describe('the instructions of kernels/', async () => {
  const files = readdirSync('kernels/instructions')
  const programs = await Promise.all(files.map((f) => load(`kernels/instructions/${f}`)))
  const all = programs.flatMap((p) => [...p.instructions]).filter(([, instr]) => !packedOperand(instr))

  test('floats of test data have both signs', () => {
    const tensors = all.flatMap(([, instr]) => Object.values(instructionTest(instr).inputs.tensors ?? {}))
    const floats = new Set(
      tensors.flatMap((t) => (t.kind === 'dense' && t.dtype === 'f32' ? [...t.values] : [])),
    )
    expect([Math.min(...floats), Math.max(...floats)]).toEqual([-3, 3])
  })

  test.each(sample(all, 25))('%s has a test of its body that detects mutations', (_, instr) => {
    const { kernel, inputs } = instructionTest(instr)
    const run = (k: Kernel): number[][] => {
      const { loops } = k.compilation
      const values = new Map(
        loops.buffers.map((b) => {
          const length = b.shape.reduce((x, e) => x * (e.kind === 'const' ? e.value : 0), 1)
          const given = inputs.tensors?.[b.name]
          // Indices are what they may be.
          if (b.below && given?.kind === 'dense') return [b.name, Array.from(given.values as Int32Array)]
          return [b.name, Array.from({ length }, (_x, e) => (given ? (e % 7) - 3 : Number.NaN))]
        }),
      )
      interpret(loops, values, new Map())
      return [...values.values()]
    }
    let plain = kernel
    for (let k = kernel.compilation.loopSteps.length; k > 0; k--) plain = plain.undo()
    expect(plain.compilation.loopSteps).toEqual([])
    expect(run(kernel)).toEqual(run(plain))
    for (const operand of movable(instr))
      expect(instructionTest(mistaken(instr, operand)).kernel.emit('cuda')[0]!.text).not.toBe(
        kernel.emit('cuda')[0]!.text,
      )
  })
})
