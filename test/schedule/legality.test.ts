/**
 * Each check that keeps a result right (messages: `rejections.test.ts`) prevents a wrong one: with the check answering yes, the step that it refuses
 * changes what is computed, races, reads or writes outside of arrays, or leaves a stage that cannot be made. Where that
 * takes a device with instructions, `legality-instructions.test.ts` has it.
 */
import { expect, test, vi } from 'vitest'
import { answeringYes, yes } from '../support/disabled-checks.ts'

vi.mock('../../src/ast/diagnostics/diagnostic.ts', async (original) => {
  const support = await import('../support/disabled-checks.ts')
  return support.answering(await original<typeof import('../../src/ast/diagnostics/diagnostic.ts')>())
})

import { parseProgram } from '../../src/api/programs/program.ts'
import { add } from '../../src/ir/expressions/expr.ts'
import type { Kernel2 } from '../../src/ir/statements/loops.ts'
import type { Kernel } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { replay } from '../../src/schedule/state/state.ts'
import type { LoopStep } from '../../src/schedule/steps/step-data.ts'
import { interpreted, interpretedPlan } from '../support/interpreted.ts'
import { run } from '../support/kernel2.ts'
import { FORMATS } from '../support/program-parts.ts'
import { refusal } from '../support/refusal.ts'
import { at, buffer, expr, kernel2, loop, store } from '../support/stage2-builders.ts'
import { ILLEGAL, type Wrong } from './legality-cases.ts'

const [M, N, D] = [3, 4, 2]
const A = {
  kind: 'coords' as const,
  shape: [M, N],
  // A row without elements.
  coords: [Int32Array.of(0, 0, 2, 2, 2), Int32Array.of(0, 2, 1, 2, 3)],
  values: Int32Array.of(1, 2, 4, 5, 6),
  dtype: 'i32' as const,
}

function inputsOf(k: Kernel): Inputs {
  const sizes: Readonly<Record<string, number>> = { i: M, c: N, f: D, four: 4 }
  const tensors: Record<string, NonNullable<Inputs['tensors']>[string]> = { A }
  for (const b of k.compilation.source.buffers) {
    if ((b.role !== 'in' && b.role !== 'inout') || b.name === 'A') continue
    const shape = b.axes.map((a) => sizes[a]!)
    const values = Int32Array.from({ length: shape.reduce((x, y) => x * y, 1) }, (_, e) => (e * 3 + 1) % 5)
    tensors[b.name] = { kind: 'dense', shape, values, dtype: 'i32' }
  }
  return { tensors, params: { m: M, n: N, d: D } }
}

/** What is wrong with a kernel; nothing where every stage and order computes what the reference does. */
function wrongWith(k: Kernel, inputs: Inputs): Wrong | undefined {
  const { source } = k.compilation
  const expected = reference(source, referenceInputs(source, bindInputs(source, inputs))).buffers
  try {
    for (const run of [interpreted, interpretedPlan]) {
      const memory = run(k, inputs)
      for (const [name, want] of Object.entries(expected)) {
        const got = memory.get(name)!
        if (want.values.some((x, e) => x !== got[e])) return 'values'
      }
    }
    return undefined
  } catch (e) {
    const { message } = e as Error
    if (/miss a barrier/.test(message)) return 'barrier'
    return /races/.test(message) ? 'race' : /outside/.test(message) ? 'outside' : 'stage'
  }
}

test.each(ILLEGAL)('$code prevents: $wrong ($steps)', ({ code, wrong, kernel, steps }) => {
  const program = parseProgram(`${FORMATS}\n${kernel}\nschedule k.s { ${steps} }`)
  const scheduled = (): Kernel => {
    const k = program.kernel('k').schedule('s')
    void k.compilation.loops
    return k
  }
  const plain = program.kernel('k')
  const inputs = inputsOf(plain)
  expect(wrongWith(plain, inputs)).toBeUndefined()
  answeringYes(code, () => {
    let made: Kernel
    try {
      made = scheduled()
    } catch (e) {
      expect((e as Error).message).not.toMatch(/^schedule\//)
      expect(wrong).toBe('stage')
      return
    }
    expect(wrongWith(made, inputs)).toBe(wrong)
  })
  expect(yes.asked).toBeGreaterThan(0)
})

/** `S[i + 1] = S[i] + S[i]`: every iteration reads what the one before wrote. */
const chain = kernel2(
  'chain',
  ['m'],
  [buffer('S', [add(expr('m'), expr(1)), 4], 'inout')],
  [
    loop('i', 'm', [
      loop('f', 4, [
        store(at('S', [add(expr('i'), expr(1)), 'f']), add(at('S', ['i', 'f']), at('S', ['i', 'f']))),
      ]),
    ]),
  ],
)
const chained = {
  params: new Map([['m', 4]]),
  arrays: new Map([['S', Array.from({ length: 20 }, (_, e) => e + 1)]]),
}

test.each([
  [
    'serpentine',
    [
      { kind: 'split', loop: 'f', by: 2 },
      { kind: 'reorder', loops: ['fo', 'i', 'fi'] },
      { kind: 'serpentine', loop: 'i', by: 2 },
    ],
  ],
  ['reverse', [{ kind: 'reverse', loop: 'i' }]],
  ['bind', [{ kind: 'bind', bindings: [{ loop: 'i', to: 'block.x' }] }]],
] as const)('order-matters prevents: a changed order of iterations (%s)', (_, steps) => {
  const apply = (): Kernel2 => replay(chain, steps as unknown as LoopStep[]).kernel
  expect(refusal(apply).code).toBe('schedule/order-matters')
  const made = answeringYes('order-matters', apply)
  expect(run(made, chained, 'backward')).not.toEqual(run(chain, chained))
})

const SUMS = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: i32[i, j] in
  buffer y: i32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
}
schedule k.s { reorder (j, i) }`

// The order is put right before it is checked: the check keeps a step from doing something else than it says.
test('parent-first prevents no wrong result: parents come first without it, but not in the requested order', () => {
  const program = parseProgram(SUMS)
  const reordered = (): Kernel => program.kernel('k').schedule('s')
  expect(refusal(reordered).code).toBe('schedule/parent-first')
  const made = answeringYes('parent-first', reordered)
  expect(made.compilation.kernel).toEqual(program.kernel('k').compilation.kernel)
})
