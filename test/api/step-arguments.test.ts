/** Errors about the arguments of a step method show a call of it, and name the axis or form that was meant. */
import { beforeAll, describe, expect, test } from 'vitest'
import * as api from '../../src/node.ts'
import { COORD_STEPS } from '../../src/schedule/coordinates/steps.ts'
import type { Declared } from '../../src/schedule/primitive.ts'
import { LOOP_STEPS } from '../../src/schedule/primitives.ts'
import { stepProblem } from '../../src/schedule/steps/step-data.ts'
import { errorOf, TEXT } from './support.ts'

// biome-ignore lint/suspicious/noExplicitAny: calls that TypeScript would refuse are what is tested
let k: any
beforeAll(async () => {
  k = (await api.load(TEXT)).kernel('mul')
})

describe.each([LOOP_STEPS, COORD_STEPS])('the example call of a primitive', (list) => {
  const primitives = Object.entries(list as Readonly<Record<string, Declared<unknown, never>>>)
  test.each(primitives.filter(([word]) => word !== 'as'))(
    'of %s is one of its method',
    (word, { call, given }) => {
      const method = call.slice(0, call.indexOf('('))
      const { place, instr, ...fields } = new Function(method, `return ${call}`)(given)
      const declared = { ...(place && { scope: place }), ...(instr && { instr: { name: instr } }) }
      const known = Object.entries({ kind: word, ...fields, ...declared }).filter(([, x]) => x !== undefined)
      expect(stepProblem(Object.fromEntries(known), list)).toBeUndefined()
    },
  )
})

test('reorder takes loops or a list of them', () => {
  expect(k.reorder(['i', 'f', 'j']).trace).toEqual(k.reorder('i', 'f', 'j').trace)
})

test.each<[string, () => unknown, string]>([
  ['no argument', () => k.split(), "write `split('i', 32, ['io', 'ii'])`"],
  ['an argument of another type', () => k.attach(1, 2), "write `attach('p', 'j')`"],
  ['an argument too many', () => k.bind('i', 'block.x'), "write `bind({ io: 'block.x', ii: 'thread.x' })`"],
  ['names in place of a list', () => k.fuse('i', 'j'), "write `fuse(['i', 'j'], 'ij')`"],
  ['an axis of CUDA', () => k.bind({ i: 'threadIdx.x' }), 'did you mean `thread.x`?'],
  ['a block of CUDA', () => k.bind([['i', 'blockIdx.y']]), 'did you mean `block.y`?'],
])('%s', async (_, work, hint) => {
  expect((await errorOf(work)).diagnostics[0]!.hint).toBe(hint)
})
