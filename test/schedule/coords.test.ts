/** Steps on coordinates: the documented examples, refusals, and equal results. */
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import type { SptError } from '../../src/ast/diagnostic.ts'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import { example as asExample } from '../../src/schedule/coords/as.ts'
import { nest, parts } from '../../src/schedule/coords/as-examples.ts'
import { example as attachExample } from '../../src/schedule/coords/attach.ts'
import { example as fuseExample } from '../../src/schedule/coords/fuse.ts'
import { example as reorderExample } from '../../src/schedule/coords/reorder.ts'
import { refusal } from '../support/refusal.ts'

const EXAMPLES = {
  as: asExample,
  'as in parts': parts,
  'as of a nest': nest,
  attach: attachExample,
  fuse: fuseExample,
  reorder: reorderExample,
}

const apply = (text: string, steps: string) =>
  parseProgram(`${text}\nschedule k.s() {\n${steps}\n}`).kernel('k').schedule('s')

describe.each(Object.entries(EXAMPLES))('%s', (_, example) => {
  test('turns before into after', () => {
    expect(apply(example.before, example.steps).show(1)).toBe(example.after)
  })

  test('keeps the result', async () => {
    const device = createCpuDevice()
    const k = apply(example.before, example.steps)
    const compiled = await k.compile(device)
    for (const seed of [1, 2, 3]) {
      const params = Object.fromEntries(
        ['m', 'n', 'd', 'q']
          .filter((p) => k.compilation.source.params.some((x) => x.name === p))
          .map((p, at) => [p, 3 + ((seed * 5 + at * 3) % 9)]),
      )
      const prepared = await compiled.prepare({ params, seed })
      expect((await prepared.verify()).problems).toEqual([])
    }
  })

  test('can be undone', () => {
    const k = apply(example.before, example.steps)
    expect(k.undo().show(1)).toBe(parseProgram(example.before).kernel('k').show(1))
  })

  test('its trace replays', () => {
    const k = apply(example.before, example.steps)
    const again = parseProgram(example.before)
      .kernel('k')
      .replay(JSON.parse(JSON.stringify(k)))
    expect(again.show(1)).toBe(example.after)
  })
})

const K = reorderExample.before
const refusals: readonly (readonly [string, string, string])[] = [
  ['a child before its parent', 'reorder (j, i)', 'schedule/parent-first'],
  ['an unknown iterator', 'reorder (i, q)', 'schedule/unknown-loop'],
  ['the same iterator twice', 'reorder (i, i)', 'schedule/repeated-loop'],
  ['fusing independent roots on coordinates', 'fuse (i, f)', 'schedule/not-a-chain'],
  ['fusing without the root', 'fuse (j, f)', 'schedule/not-a-chain'],
  ['fusing into a taken name', 'fuse (i, j) -> f', 'schedule/name-taken'],
  ['attaching where nothing is joined', 'attach j to f', 'schedule/no-join'],
  ['attaching a root', 'attach f to i', 'schedule/no-parent'],
]
test.each(refusals)('refuses %s', (_, steps, expected) => {
  expect(refusal(() => apply(K, steps)).code).toBe(expected)
})

test('refuses a format whose padding would take part', () => {
  const text = asExample.before.replace('y[i] += A[i, j] * x[j]', 'y[i] max= A[i, j] * x[j]')
  expect(refusal(() => apply(text, 'A as blocks(2)')).code).toBe('schedule/format-padding')
})

test('a format step after a step on loops is too late', () => {
  expect(refusal(() => apply(asExample.before, 'split i by 2\nA as blocks(2)')).code).toBe(
    'schedule/too-late',
  )
})

test('a refusal shows the kernel as it is', () => {
  try {
    apply(K, 'reorder (j, i)')
  } catch (e) {
    expect((e as SptError).diagnostics[0]!.notes?.[0]).toContain('iterate sum [i, j, f] as SRS')
    return
  }
  expect.unreachable()
})
