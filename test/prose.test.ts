/** The prose lint: what it counts, and the ratchet. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { help, markdown, messages } from '../scripts/prose/blocks.mjs'
import { MEASURES, phrases } from '../scripts/prose/rules.mjs'
import { badSubjects, measure, rateOf, worse } from '../scripts/prose.mjs'

const hits = (key: keyof typeof MEASURES, text: string) =>
  markdown('x.md', text).flatMap((b) =>
    phrases(MEASURES[key], b).map((p) => `${p.line} ${p.phrase}: ${p.better}`),
  )

test('a phrase is reported with its line and the better word', () => {
  expect(
    hits('glossary', '# asks\n\nA `rooms` line\nthat asks **nobody**.\n```\nrooms\n```\n- no room'),
  ).toEqual(['4 asks: evaluates, checks, queries, requires', '8 room: capacity; module, folder'])
  expect(hits('relatives', 'Here is\nwhat finds it.')[0]).toMatch(/^2 what finds: a noun/)
  expect(hits('starts', 'A first. What follows is bad. What is it?')).toHaveLength(1)
  expect(hits('glossary', 'There is no axis n. The loop nest rounds to even.')).toEqual([])
})

test('paragraphs and cells have a longest length, and code is not prose', () => {
  const long = (n: number) => Array(n).fill('word').join(' ')
  expect(hits('paragraphs', `${long(80)}\n\n- ${long(81)}\n\n\`${long(99)}\``)).toEqual([
    '3 81 words: two paragraphs, a list or a table',
  ])
  expect(hits('cells', `| a | b |\n|---|---|\n| ${long(25)} | ${long(26)} |`)).toHaveLength(1)
})

test('messages and help are the literals of the sources, with inserted values left out', () => {
  const source = [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a source that is read
    "fail({ code: 'a/b', message: `the ${kind === 'x' ? 'axis kind' : y} is 'bad'`, hint: a ? 'say so' : b })",
    "const r = /['\"]/; const other = 'one two three'",
  ].join('\n')
  expect(messages('x.ts', source).map((b) => b.text)).toEqual(['axis kind', "the CODE is 'bad'", 'say so'])
  expect(help('src/cli/x.ts', source).map((b) => [b.line, b.text])).toEqual([[2, 'one two three']])
})

test('a group is worse only where its count and its rate are, and above the target', () => {
  fc.assert(
    fc.property(fc.nat(200), fc.nat(200), fc.integer({ min: 50, max: 5000 }), (before, after, words) => {
      const figure = (n: number): [number, number] => [n, rateOf('pronouns', n, words)]
      const [was, now] = [figure(before), figure(after)]
      expect(worse('pronouns', now, was)).toBe(now[1] > was[1] && now[1] > MEASURES.pronouns.target)
      expect(worse('pronouns', was, was)).toBe(false)
    }),
  )
  // Clean sentences were deleted: the rate rises, the count does not.
  expect(worse('relatives', [4, 9], [4, 5])).toBe(false)
  expect(worse('you', [4, 1], [5, 2])).toBe(true)
  expect(worse('you', [30, 6], [40, 9])).toBe(false)
})

test('every file is in a group, and comments are measured by folder', () => {
  const groups = measure(['README.md', 'src/ir/coordinates/axis.ts', 'src/cli/a.ts'], (f) =>
    f === 'README.md'
      ? 'You run it.'
      : "/** What asks. */\nfail({ message: 'it tells all' })\nout('one two three')",
  )
  expect([...groups.keys()]).toEqual(['readme', 'comments/ir', 'messages', 'comments/cli', 'help'])
  expect(groups.get('comments/ir')!.hits.get('relatives')).toMatchObject([
    { file: 'src/ir/coordinates/axis.ts', line: 1 },
  ])
})

test('subjects of commits are `area: imperative summary`', () => {
  const bad = ['Fix things', 'cli: Add x', 'cli add x', `cli: ${'x'.repeat(70)}`]
  expect(badSubjects(['cli, docs: name the size', ...bad])).toEqual(bad)
})
