import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scan } from '../../src/ast/parse/lexical-scan.ts'
import { print } from '../../src/ast/print/print.ts'
import { runs, scaled } from '../support/cases.ts'
import { file } from './arbitrary.ts'
import { bare, read } from './support.ts'

const format = (text: string): string => print(read(text))
const comments = (text: string): string[] => scan({ name: 't', text }).comments.map((c) => c.text)

/** `print(f)` without comments, cut where white space, and therefore a comment, may stand. */
const gaps = (text: string): string[] => text.split(/(?<=[\s,;[\](){}])/)

describe('fmt', () => {
  test('keeps every comment, wherever it stands, and is idempotent', () => {
    let seen = 0
    fc.assert(
      fc.property(file, fc.infiniteStream(fc.nat(5)), fc.nat(), (f, choice, seed) => {
        const clean = print(
          JSON.parse(
            JSON.stringify(f, (k, v) =>
              k === 'trivia' || k === 'lines' ? undefined : v === Infinity ? 7 : v,
            ),
          ),
        )
        // A call's parenthesis follows its name, and paths are kept as they are.
        fc.pre(!clean.includes('"') && !clean.includes('null'))
        const pieces = gaps(clean)
        let text = ''
        let n = seed % 7
        for (const piece of pieces) {
          text += piece
          const kind = choice.next().value
          if (kind === 0) text += ` // c${n++}\n`
          if (kind === 1) text += `/* c${n++} */`
          if (kind === 2) text += '\n\n'
        }
        const once = format(text)
        seen += comments(text).length
        expect(comments(once).toSorted()).toEqual(comments(text).toSorted())
        expect(format(once)).toBe(once)
        expect(bare(read(format(clean)))).toEqual(bare(read(clean)))
      }),
      { numRuns: runs(60) },
    )
    expect(seen).toBeGreaterThan(scaled(50))
  })

  test('leaves comments where they were', () => {
    const text = `// A licence.

// The sum of two.
kernel k(m: size) { // one size
  // Rows.
  axis i      = dense_fixed(m) // all of them
  axis longer = dense_fixed(m)

  buffer A:   f32[i] in
  buffer Out: f32[]  out
  iterate all [i] as R {
    if (A[i] > 0) { // positive
      Out[] += A[i]
      // nothing else
    } else if (A[i] == 0) {
      Out[] += 1
    } else { /* negative */
      Out[] += -A[i] // the size of it
    }

    // end of the body
  }
  // end of the kernel
} // k

// after k

// the end
`
    expect(format(text)).toBe(text)
  })

  test('line breaks of other systems become line feeds', () => {
    expect(format('kernel k() {\r\n  // a\r\n  /* b\r\n c */\r\n}\r\n')).toBe(
      'kernel k() {\n  // a\n  /* b\n c */\n}\n',
    )
  })
})
