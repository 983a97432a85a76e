/** Names that are kept from step to step are those of the kernel, whatever was followed before. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { int } from '../../src/ir/expressions/expr.ts'
import type { Kernel2, Stmt } from '../../src/ir/statements/loops.ts'
import { stmt } from '../../src/ir/statements/tree.ts'
import { KernelNames } from '../../src/schedule/names/kernel-names.ts'
import { property } from '../support/property.ts'

const NAMES = ['a', 'b', 'c', 'd']
const loop = (v: string, k: number): Stmt =>
  stmt<Stmt>({
    kind: 'for',
    var: `${v}${k}`,
    name: v,
    nest: 'n',
    extent: int(2),
    guards: [],
    reduce: false,
    mode: { kind: 'serial' },
    body: [],
  } as unknown as Stmt)
// One statement a place: kernels share those that steps leave alone.
const pool = NAMES.flatMap((v) => [0, 1, 2].map((k) => loop(v, k)))
const bodies = fc.array(fc.shuffledSubarray(pool), { minLength: 1, maxLength: 6 })

property([bodies, fc.array(fc.constantFrom(...NAMES))])('follow', (all, gone) => {
  const followed = new KernelNames()
  for (const body of all) {
    const kernel = { params: [], buffers: [], body } as unknown as Kernel2
    const consumed = gone.map((v) => ({ var: v }) as never)
    followed.follow(kernel, consumed)
    const fresh = new KernelNames().follow(kernel, consumed)
    const vars = new Set([...gone, ...body.map((s) => (s.kind === 'for' ? s.var : ''))])
    for (const name of [...NAMES, ...NAMES.flatMap((v) => [`${v}0`, `${v}1`, `${v}2`])]) {
      expect(followed.has(name)).toBe(vars.has(name))
      expect(followed.nestsWith(name)).toEqual(fresh.nestsWith(name))
      expect(followed.nestsWith(name)).toEqual(body.filter((s) => s.kind === 'for' && s.name === name))
    }
  }
})
