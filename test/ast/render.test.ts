import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Diagnostic, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { render } from '../../src/ast/diagnostics/render.ts'
import { spanIn } from '../../src/ast/diagnostics/span.ts'
import { distance, suggestion } from '../../src/ast/diagnostics/suggest.ts'
import { load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'

/** Advice that draws nothing, for tests of frames. */
const UNSEEN = { hint: '' }

/** Marks `«…»` (primary) and `‹label:…›` in a text as spans. */
function marked(text: string): { source: { name: string; text: string }; diagnostic: Diagnostic } {
  let out = ''
  let start = 0
  let span: Diagnostic['span']
  const labels: { span: NonNullable<Diagnostic['span']>; text: string }[] = []
  const open: { at: number; text: string }[] = []
  for (let p = 0; p < text.length; p++) {
    const c = text[p]!
    if (c === '«') start = out.length
    else if (c === '»') span = { source: 't.spt', start, end: out.length }
    else if (c === '‹') {
      const colon = text.indexOf(':', p)
      open.push({ at: out.length, text: text.slice(p + 1, colon) })
      p = colon
    } else if (c === '›') {
      const o = open.pop()!
      labels.push({ span: { source: 't.spt', start: o.at, end: out.length }, text: o.text })
    } else out += c
  }
  const diagnostic: Diagnostic = { code: 'a/b', message: 'wrong', ...(span && { span }), labels, ...UNSEEN }
  return { source: { name: 't.spt', text: out }, diagnostic }
}
const draw = (text: string): string => {
  const { source, diagnostic } = marked(text)
  return render([diagnostic], [source])
}

describe('frames', () => {
  test('of two sources with one name', () => {
    const [one, other] = ['a b', '\nc'].map((text) => ({ name: 't.spt', text }))
    const labels = [{ span: spanIn(other!, 1, 2), text: 'there' }]
    const d = { code: 'a/b', message: 'wrong', span: spanIn(one!, 2, 3), labels, ...UNSEEN }
    const both = render([d], [])
    expect(both).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:3
        |
      1 | a b
        |   ^
       --> t.spt:2:1
        |
      2 | c
        | - there"
    `)
    for (const given of [one!, other!]) expect(render([d], [given])).toBe(both)
  })
  test('one span', () => {
    expect(draw('let «x» = 1\n')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:5
        |
      1 | let x = 1
        |     ^"
    `)
  })
  test('labels beside and under each other', () => {
    expect(draw('let ‹here:x› = «y»\n')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:9
        |
      1 | let x = y
        |     - here
        |         ^"
    `)
    expect(draw('‹all:let ‹inner:x› = «y››\n'.replace('››', '»›'))).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:9
        |
      1 | let x = y
        | --------- all
        |     - inner
        |         ^"
    `)
  })
  test('lines apart', () => {
    expect(draw('‹one:a›\nb\n«c»\nd\ne\n‹two:f›')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:3:1
        |
      1 | a
        | - one
      2 | b
      3 | c
        | ^
      ...
      6 | f
        | - two"
    `)
  })
  test('a span of several lines, short and long', () => {
    expect(draw('  if «{\n\n    b\n  } else»\n')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:6
        |
      1 |   if {
        |      ^
      ...
      4 |   } else
        |   ^^^^^^"
    `)
    expect(draw('  ‹the loop:if {\n1\n2\n3\n4\n5\n  }›\n')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:3
        |
      1 |   if {
        |   ----
      ...
      7 |   }
        |   - the loop"
    `)
  })
  test('tabs, carriage returns, wide and combining characters', () => {
    expect(draw('\tlet\t«x» = 1\r\n')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:6
        |
      1 |     let x = 1
        |         ^"
    `)
    expect(draw('// 漢字 😀 e\u0301 «here» \n')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:12
        |
      1 | // 漢字 😀 é here
        |              ^^^^"
    `)
    expect(draw('a\u0007«b»')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:3
        |
      1 | a�b
        |   ^"
    `)
  })
  test('the end of the file, with and without a line break, and an empty file', () => {
    expect(draw('kernel«»')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:7
        |
      1 | kernel
        |       ^"
    `)
    expect(draw('kernel\n«»')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:2:1
        |
      2 |
        | ^"
    `)
    expect(draw('«»')).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:1
        |
      1 |
        | ^"
    `)
  })
  test('a very long line is cut around the mark', () => {
    const lines = draw(`${'x'.repeat(500)} «here» ${'y'.repeat(500)}`).split('\n')
    expect(Math.max(...lines.map((l) => l.length))).toBeLessThan(180)
    const at = lines[3]!.indexOf('here')
    expect(at).toBeGreaterThan(0)
    expect(lines[4]!.indexOf('^^^^')).toBe(at)
  })
  test('line numbers of different widths, several files, a file without text', () => {
    const span = (source: string, start: number) => ({ source, start, end: start + 1 })
    expect(
      render(
        [
          {
            code: 'a/b',
            severity: 'warning',
            message: 'three files',
            span: span('a', 20),
            labels: [
              { span: span('a', 0), text: 'first' },
              { span: span('b', 0), text: 'second' },
              { span: span('c', 0), text: 'third' },
            ],
            ...UNSEEN,
          },
        ],
        [
          { name: 'a', text: 'x\n'.repeat(12) },
          { name: 'b', text: 'y' },
        ],
      ),
    ).toMatchInlineSnapshot(`
      "warning[a/b]: three files
        --> a:11:1
         |
       1 | x
         | - first
      ...
      11 | x
         | ^
        --> b:1:1
         |
       1 | y
         | - second
        --> c"
    `)
  })
})

describe('around the frame', () => {
  test('expected, did you mean, hint, notes', () => {
    const { source, diagnostic } = marked('«smal»')
    expect(
      render(
        [
          {
            ...diagnostic,
            expected: 'a size',
            lookup: { name: 'smal', candidates: ['small', 'large'] },
            hint: 'try',
            notes: ['short', 'for i\n  for j'],
          },
          { code: 'c/d', severity: 'note', message: 'no span', hint: 'two\nlines' },
        ],
        [source],
      ),
    ).toMatchInlineSnapshot(`
      "error[a/b]: wrong
       --> t.spt:1:1
        |
      1 | smal
        | ^^^^
        = expected: a size
        = did you mean: \`small\`?
        = hint: try
        = note: short
        = note:
          for i
            for j

      note[c/d]: no span
        = hint: two
          lines"
    `)
  })

  test('colours change nothing else', () => {
    const { source, diagnostic } = marked('a\n‹x:b› «c»\n')
    const d = { ...diagnostic, hint: 'h', notes: ['a\nb'] }
    const colored = render([d], [source], { color: true })
    expect(colored).toContain('\u001b[31m')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is tested
    expect(colored.replace(/\u001b\[\d+m/g, '')).toBe(render([d], [source]))
  })

  test('any spans in any text are drawn, each mark under its line', () => {
    const range = fc.tuple(fc.nat(80), fc.nat(80))
    const unit = fc.constantFrom('a', ' ', '\t', '\n', '\r\n', '😀', '漢', '\u0301', '\ud800', '\0')
    fc.assert(
      fc.property(
        fc.array(unit, { maxLength: 60 }),
        range,
        fc.array(range, { maxLength: 3 }),
        (chars, first, more) => {
          const span = ([a, b]: readonly [number, number]) => ({
            source: 't',
            start: Math.min(a, b),
            end: Math.max(a, b),
          })
          const out = render(
            [
              {
                code: 'a/b',
                message: 'm',
                span: span(first),
                labels: more.map((r, k) => ({ span: span(r), text: `l${k}` })),
                ...UNSEEN,
              },
            ],
            [{ name: 't', text: chars.join('') }],
          )
          expect(out).toContain('^')
          more.forEach((_, k) => {
            expect(out).toContain(`l${k}`)
          })
          expect(out).not.toMatch(/[\t\r\0]/)
        },
      ),
      { numRuns: runs(300) },
    )
  })
})

describe('did you mean', () => {
  test.each([
    ['splti', ['split', 'bind'], 'did you mean `split`?'],
    ['A', ['a', 'b'], 'did you mean `a`?'],
    ['abc', ['abd', 'abe', 'zzz'], 'did you mean `abd` or `abe`?'],
    ['zzz', ['aaa', 'bbb', 'aaa'], 'known `aaa`, `bbb`'],
    ['zzz', [], ''],
    ['zzz', Array.from({ length: 20 }, (_, k) => `name${k}`), ''],
  ])('%s among %s: %s', (name, candidates, expected) => {
    const s = suggestion({ name, candidates }, false)
    expect(s ? `${s.title} ${s.text}` : '').toBe(expected)
  })

  test('a failed look-up without other explanation lists the candidates', () => {
    const text = (candidates: readonly string[]) => suggestion({ name: 'zzz', candidates }, true)?.text
    expect(text([])).toBe('none')
    expect(text(['aaa', 'bbb'])).toBe('`aaa`, `bbb`')
    const many = Array.from({ length: 12 }, (_, k) => `name${k}`)
    expect(text(many)).toBe(
      `${many
        .slice(0, 10)
        .map((n) => `\`${n}\``)
        .join(', ')} and 2 more`,
    )
    const lookup = { name: 'zzz', candidates: many }
    const drawn = (hint?: string) =>
      render([{ code: 'a/b', message: 'm', lookup, ...(hint && { hint }) }], [])
    expect(drawn()).toContain('known: `name0`')
    expect(drawn('h')).not.toContain('known')
  })

  test('distance is a metric on edits', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 })
    fc.assert(
      fc.property(word, word, fc.nat(8), (a, b, k) => {
        const d = distance(a, b)
        expect(d === 0).toBe(a === b)
        expect(distance(b, a)).toBe(d)
        expect(d).toBeLessThanOrEqual(Math.max(a.length, b.length))
        expect(distance(a, b, k) <= k).toBe(d <= k)
      }),
    )
    expect(distance('spilt', 'split')).toBe(1)
    expect(distance('kitten', 'sitting')).toBe(3)
  })
})

describe('terminal control sequences', () => {
  const evil = 'a\u001b[31mb\u001b]0;c\u0007\r\u007f\u009bd\u202ee'
  const said = 'a\\u001b[31mb\\u001b]0;c\\u0007\\u000d\\u007f\\u009bd\\u202ee'
  const raw = (text: string): boolean => /[^\P{Cc}\n]|\u202e/u.test(text)

  test('are escaped everywhere in a diagnostic', () => {
    const span = { source: evil, start: 0, end: 3 }
    const d: Diagnostic = {
      code: 'a/b',
      message: evil,
      span,
      labels: [
        { span, text: evil },
        { span: { ...span, source: `${evil}2` }, text: evil },
      ],
      expected: evil,
      hint: evil,
      notes: [evil, `${evil}\n${evil}`],
      lookup: { name: `${evil}f`, candidates: [evil] },
    }
    const text = render([d], [{ name: evil, text: `${evil}\n${evil}` }])
    expect(raw(text)).toBe(false)
    // Message, both sources, label, expected, guess, hint and three lines of notes.
    expect(text.split(said).length - 1).toBe(10)
  })

  test('line breaks and tabs stay, and colours are those of spt', () => {
    const d: Diagnostic = { code: 'a/b', message: 'x\ty', hint: 'one\r\ntwo' }
    expect(render([d], [])).toBe('error[a/b]: x\ty\n  = hint: one\n    two')
    const colored = render([{ ...d, message: evil }], [], { color: true })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: our colours
    expect(raw(colored.replace(/\u001b\[\d+m/g, '').replaceAll('\t', ''))).toBe(false)
    expect(colored).toContain(said)
  })
})

test('an error that nobody catches prints its diagnostics, and not the texts it points into', async () => {
  const e = await load(
    'import "sparsetile/kernels/spmm.spt"\nkernel k(m: size) { axis i = dense_fixed(mm) }',
  ).catch((error: unknown) => error)
  expect((e as SptError).sources?.size).toBeGreaterThan(1)
  expect(inspect(e, { depth: 10 })).toContain('mm')
  expect(inspect(e, { depth: 10 })).not.toContain('schedule spmm')
})

test('an error that nobody catches prints its source frame and the caller, not the compiler', async () => {
  const text = 'kernel k(n: size) {\n  axis i = dense_fixed(n)\n  buffer x: f32[n] in\n}'
  const e = (await load(text).catch((error: unknown) => error)) as SptError
  // Node prints the stack, and the properties that are enumerable.
  expect(e.stack).toMatch(/^SptError: error\[check\/unknown-axis\]: n is a size.*\n --> text\.spt:3:17\n/)
  expect(e.stack).toContain('3 |   buffer x: f32[n] in\n')
  expect(e.stack).not.toMatch(/src\/(ast|api|elaborate)\//)
  expect(inspect(e)).not.toContain('diagnostics')
})

test('a diagnostic that two places report is listed once, in order', () => {
  const [first, second] = ['a', 'b'].map((message) => ({ code: 'a/b', message, ...UNSEEN }))
  const list = [first!, second!, { ...first! }, { ...first!, span: { source: 't.spt', start: 0, end: 1 } }]
  expect(new SptError(list).diagnostics).toEqual([list[1], list[2], list[3]])
})
