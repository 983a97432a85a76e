/** Halves of registers: two that are written one after the other are one word, and all others are what they were. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SPELLINGS } from '../../src/backends/targets/cuda/spellings.ts'
import { vectorAccesses } from '../../src/backends/vectors/vectorize-accesses.ts'
import { constant, int, load } from '../../src/ir/expressions/expr.ts'
import type { Memory } from '../../src/ir/instructions/instr.ts'
import type { Buffer, Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { local, store } from '../../src/ir/statements/statement-builders.ts'
import { type Body, stmt } from '../../src/ir/statements/tree.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { diagnosticOf } from '../support/refusal.ts'

const SLOTS = 6

const memory = (dtype: 'f16' | 'bf16'): Memory => ({
  name: 'tile',
  dtype,
  shape: [32 * SLOTS],
  scope: 'register',
  threads: 32,
  size: SLOTS,
  align: 0,
  element: [int(0)],
})
const halves: Buffer = { ...local('P', 'f16', [int(SLOTS)], 'register'), memory: memory('f16') }
const plain: Buffer = local('P', 'f16', [int(SLOTS)], 'register')

/** The list after the pass. */
function packed(list: Body, buffer: Buffer): Body {
  const plan: Kernel3 = {
    stage: 3,
    name: 'k',
    params: [],
    buffers: [],
    steps: [
      {
        kind: 'launch',
        name: 'k',
        grid: [int(1), int(1), int(1)],
        block: [32, 1, 1],
        body: [stmt<Stmt>({ kind: 'alloc', buffer }), ...list],
      } as never,
    ],
  }
  const [launch] = vectorAccesses(plan, SPELLINGS).steps
  return launch?.kind === 'launch' ? launch.body.slice(1) : []
}

const written = (slot: number, value: number): Stmt => store('P', [int(slot)], constant(value, 'f32'))
const read = (slot: number, name: string): Stmt =>
  stmt<Stmt>({ kind: 'let', name, dtype: 'f16', value: load('P', [int(slot)], 'f16') })

/** What is in the slots after the list, and what was read on the way. */
function ran(list: Body): readonly number[] {
  const slots = new Array<number>(SLOTS).fill(-1)
  const seen: number[] = []
  const value = (e: unknown): number => (e as { value: number }).value
  for (const s of list) {
    if (s.kind === 'store') slots[value(s.index[0])] = value(s.value)
    else if (s.kind === 'vector_store')
      s.values.forEach((v, k) => {
        slots[value(s.target.index[0]) + k] = value(v)
      })
    else if (s.kind === 'let' && s.value.kind === 'load') seen.push(slots[value(s.value.index[0])]!)
    else throw new Error(`${s.kind} is not expected here`)
  }
  return [...slots, ...seen]
}

const words = (list: Body): number => list.filter((s) => s.kind === 'vector_store').length

test('values are unchanged', () => {
  const slot = fc.integer({ min: 0, max: 3 })
  fc.assert(
    fc.property(fc.array(fc.tuple(slot, fc.boolean()), { maxLength: 16 }), (steps) => {
      const list = steps.map(([s, writes], k) => (writes ? written(s, k) : read(s, `v${k}`)))
      expect(ran(packed(list, halves))).toEqual(ran(list))
      expect(packed(list, plain)).toEqual(list)
    }),
  )
})

test('neighbours aligned to a word share a register, in any order', () => {
  const order = fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 0, maxLength: SLOTS })
  fc.assert(
    fc.property(order, (slots) => {
      const pairs = [0, 2, 4].filter((s) => slots.includes(s) && slots.includes(s + 1)).length
      const list = packed(
        slots.map((s) => written(s, s)),
        halves,
      )
      expect([words(list), list.length]).toEqual([pairs, slots.length - pairs])
    }),
  )
  expect(words(packed([written(0, 1), read(1, 'v'), written(1, 2)], halves))).toBe(0)
})

test.each(['f16', 'bf16'] as const)('two values of %s are converted at once', (type) => {
  const text = parseProgram(`
memory tile: ${type}[8, 8] in register of 32 threads {
  element (lane, slot) -> (lane / 4, lane % 4 * 2 + slot)
}
kernel k(m: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(8)
  buffer A: f32[i, j] in
  buffer y: ${type}[i, j] out
  iterate s [i, j] as SS { y[i, j] = ${type}(A[i, j] * 2) }
}
schedule k.tiles {
  require m % 8 == 0
  split i by 8 -> (io, ir)
  bind io to block.x
  cache_write y at io in tile
}`)
    .kernel()
    .schedule('tiles')
    .emit('cuda')[0]!.text
  expect(text).toMatch(new RegExp(`y_register\\[0 / 2\\] = f32_to_${type}x2\\(.*, .*\\);`))
  expect(text).not.toMatch(/\(\(unsigned short\*\)y_register\)\[\d\] = /)
  // As they are stored.
  expect(text).toMatch(new RegExp(`__builtin_assume_aligned\\(y .*, 4\\) = f32_to_${type}x2\\(`))
  if (!noNvcc) expect(compileCuda([text])).toBe('')
})

test.each([1, 3])('%i elements of 2 bytes do not fill words: each has a register', (size) => {
  const text = parseProgram(`
memory tile: f16[${32 * size}] in register of 32 threads {
  element (lane, slot) -> (slot * 32 + lane)
}
kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer A: f32[i] in
  buffer y: f16[i] out
  iterate s [i] as S { y[i] = f16(A[i] * 2) }
}
schedule k.tiles {
  require m % ${32 * size} == 0
  split i by ${32 * size} -> (io, ir)
  bind io to block.x
  cache_write y at io in tile
}`)
    .kernel()
    .schedule('tiles')
    .emit('cuda')[0]!.text
  expect(text).not.toContain('unsigned y_register')
  if (!noNvcc) expect(compileCuda([text])).toBe('')
})

test('words of an odd number of halves are rejected', () => {
  const text = (lanes: number): string => `
memory tile: f16[6] in register of ${lanes} threads {
  element (lane, slot) -> (slot * ${lanes} + lane)
}
instr copy(F: f16[12] in tile, S: f16[12] in global) by ${lanes} threads {
  iterate copy [i] as S { F[i] = S[i] }
  cuda \`copy($F.word[0]);\`
}`
  expect(diagnosticOf(() => parseProgram(text(2)))).toMatchObject({
    code: 'check/instr-placeholder',
    message: 'a thread has 3 elements of 2 bytes in a tile of F: they are no words',
  })
  expect(parseProgram(text(3)).instructions.has('copy')).toBe(true)
})
