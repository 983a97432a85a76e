/** Dense products with our kernels on the CPU, and loops in the library's place. */
import { expect, test } from 'vitest'
import { halves, widen } from '../../bench/gpu/blocks.ts'
import type { Case } from '../../bench/gpu/case.ts'
import { productsOf } from '../../bench/gpu/suites/gemm.ts'
import { toBf16, toF16 } from '../../src/ir/values/half.ts'
import { untimed } from './simulated-suites.ts'

const SHAPE = [6, 5, 40] as const
const SCHEDULES = [
  'gemm.spt:gemm.auto',
  'gemm-tf32.spt:gemm_tf32.auto',
  'gemm-f16.spt:gemm<f16>.auto',
  'gemm-f16.spt:gemm<bf16>.auto',
]

const cases = (schedules: readonly string[], factor = 1): Promise<readonly Case[]> =>
  untimed(schedules, (s) => productsOf(s, SHAPE), factor)

const results = (all: readonly Case[], side: string): string[][] =>
  all.map((c) => c.entries.filter((e) => e.side === side && e.result === 'ok').map((e) => e.name))

test('every type has a library routine and a kernel, correct to the stored precision', async () => {
  const all = await cases(SCHEDULES)
  expect(all.map((c) => [c.suite, c.at, c.data])).toEqual(
    ['f32', 'tf32', 'f16', 'bf16'].map((t) => [`gemm-${t}`, t, '6 × 5 × 40']),
  )
  expect(results(all, 'peer')).toEqual(['f32', 'tf32', 'f16', 'bf16'].map((t) => [`cuBLAS ${t}`]))
  // A kernel of another type is none of the case's.
  expect(results(all, 'ours')).toEqual([
    SCHEDULES.slice(0, 2),
    SCHEDULES.slice(0, 2),
    [SCHEDULES[2]],
    [SCHEDULES[3]],
  ])
})

test('errors above the rounding of stored values are detected', async () => {
  const off = await cases([SCHEDULES[3]!], 1 + 2 ** -6)
  expect(off.map((c) => c.entries.find((e) => e.side === 'peer')!.result)).toEqual(new Array(4).fill('wrong'))
})

test('bits of both types', () => {
  for (const type of ['f16', 'bf16'] as const) {
    const bits = halves(100, 1, type)
    const encode = type === 'f16' ? toF16 : toBf16
    expect([...widen(bits, type)].map(encode)).toEqual([...bits])
    expect(widen(Uint16Array.of(encode(-1.5)), type)[0]).toBe(-1.5)
  }
})
