/**
 * Parts, queries, tables and measured sizes have names that no target can spell: none may reach a text as it is.
 */
import { expect, test } from 'vitest'
import type { ModuleText } from '../../src/backends/targets/index.ts'
import { load } from '../../src/node.ts'
import { packageFormats, STANDARD, title } from '../support/packaged-schedules.ts'

const KERNELS = await Promise.all(
  [
    `kernel two(m: size, n: size, k: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis c = dense_fixed(n)
      axis f = dense_fixed(k)
      buffer A: f32[i, j] in
      buffer B: f32[c, f] in
      buffer C: f32[i, f] out
      iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
    }`,
    `kernel three(m: size, n: size, k: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis l = sparse_variable(j, k)
      buffer A: f32[i, j, l] in
      axis c = dense_fixed(k)
      buffer x: f32[c] in
      buffer C: f32[i] out
      iterate sum [i, j, l] as SRR { C[i] += A[i, j, l] * x[l] }
    }`,
  ].map(async (text) => (await load(text)).kernel()),
)
const formats = await packageFormats()

/** What a text says to machines: without comments, literals and directives. */
const said = (text: string): string =>
  text
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, ' ')
    .replace(/^\s*(#|enable\b).*$/gm, '')
    .replace(/"[^"\n]*"|'[^'\n]*'/g, '0')

const WORD = /^[A-Za-z_]\w*$/
const NUMBER = /^(0x[0-9a-f]+|\d+(e\d+)?|\de|\d*e)[uifhUL]*$/i

/** Words that are neither a name nor a number, and signs of no target's expressions. */
const misspelt = ({ text }: Pick<ModuleText, 'text'>): string[] => {
  const code = said(text)
  const words = code.match(/[\w$#\u0080-\uffff]+/g) ?? []
  return [
    ...words.filter((w) => !WORD.test(w) && !NUMBER.test(w)),
    ...(code.match(/[^\w\s()[\]{}<>.,:;?!=+\-*/%&|^~@]/g) ?? []),
  ]
}

test('a reserved name would be detected', () => {
  for (const text of ['a = count_1#0 + 1', 'let größe = 1', 'x[2nd] = 1', 'a`b', 'y = a\\b', 'part$1 = 2'])
    expect(misspelt({ text }), text).not.toEqual([])
  for (const text of [
    'x[1] = 0x1F + 2u + 1.5e-3f + 1e30',
    'a.b // count_1#0',
    '#include <x.h>\n@compute fn f() {}',
  ])
    expect(misspelt({ text }), text).toEqual([])
})

test.each(STANDARD.map((s) => [title(s), s] as const))('%s', (_, s) => {
  const kernel = KERNELS[s.order === 3 ? 1 : 0]!.as('A', formats.get(s.name)!, ...s.args)
  for (const k of [kernel, kernel.parallel()])
    for (const target of ['js', 'wgsl', 'cuda'] as const) {
      const modules = k.emit(target)
      expect(modules.length).toBeGreaterThan(0)
      for (const m of modules) {
        expect(misspelt(m), `${target}\n${m.text}`).toEqual([])
        for (const e of m.entries) expect(e.name).toMatch(WORD)
      }
    }
})
