/** Generated tests of declarations: those that say what their texts do pass, and wrong ones are found. */
import { readdirSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { InstructionVerifier, type Verdict } from '../../src/instruction-tests/instruction-verify.ts'
import { devices, load } from '../../src/node.ts'

const on = {
  js: new InstructionVerifier(() => devices.cpu()),
  wgsl: new InstructionVerifier(() => devices.webgpu()),
}
type Target = keyof typeof on
afterAll(async () => {
  for (const v of Object.values(on)) await v[Symbol.asyncDispose]()
})

const verdict = async (text: string, target: Target): Promise<Verdict> => {
  const all = [...parseProgram(text).instructions.values()]
  return on[target].verify(all.at(-1)!, all)
}

/** Operands and words, the body, a text that does it, and texts that do not, by what is wrong with them. */
interface Example {
  readonly head: string
  readonly body: string
  readonly right: string
  readonly wrong: Readonly<Record<string, string>>
}

const COPY = 'iterate copy [i] as S { D[i] = S[i] }'
const COPY2 = 'iterate copy [i, j] as SS { D[i, j] = S[i, j] }'

/** Texts of JavaScript and of WGSL at once. */
const EXAMPLES: Readonly<Record<string, Example>> = {
  'a tile of global memory': {
    head: '(D: f32[4, 4] in register, S: f32[4, 4] in global)',
    body: COPY2,
    right: '$[for i from 0 to 3: $[for j from 0 to 3: $D[4 * i + j] = $S[$S.index(i, j)];]]',
    wrong: {
      'rows taken as contiguous': '$[for k from 0 to 15: $D[k] = $S[$S.index(0, 0) + $k];]',
      'the array taken for the tile': '$[for k from 0 to 15: $D[k] = $S[$k];]',
      transposed: '$[for i from 0 to 3: $[for j from 0 to 3: $D[4 * i + j] = $S[$S.index(j, i)];]]',
    },
  },
  'a tile of shared memory': {
    head: '(D: f32[4, 4] in register, S: f32[4, 4] in shared)',
    body: COPY2,
    right: '$[for i from 0 to 3: $[for j from 0 to 3: $D[4 * i + j] = $S[$S.index(i, j)];]]',
    wrong: {
      'rows taken as contiguous': '$[for k from 0 to 15: $D[k] = $S[$S.index(0, 0) + $k];]',
      'the array taken for the tile':
        '$[for i from 0 to 3: $[for j from 0 to 3: $D[4 * i + j] = $S[$S.index(i, j) - $S.index(0, 0)];]]',
      'what it reads is changed':
        '$[for i from 0 to 3: $[for j from 0 to 3: $D[4 * i + j] = $S[$S.index(i, j)];]] $S[$S.index(3, 3)] = 99.0;',
    },
  },
  'a copy to shared memory': {
    head: '(D: f32[2, 4] in shared, S: f32[2, 4] in global)',
    body: COPY2,
    right:
      '$[for k from 0 to 3: $D[$D.index(0, k)] = $S[$S.index(0, k)]; $D[$D.index(1, k)] = $S[$S.index(1, k)];]',
    wrong: {
      'rows taken as contiguous':
        '$[for k from 0 to 3: $D[$D.index(0, k)] = $S[$S.index(0, k)]; $D[$D.index(0, 0) + 4 + $k] = $S[$S.index(1, k)];]',
      'one element too many':
        '$[for k from 0 to 3: $D[$D.index(0, k)] = $S[$S.index(0, k)]; $D[$D.index(1, k)] = $S[$S.index(1, k)];] $D[$D.index(0, 3) + 1] = 7.0;',
    },
  },
  'a row copied to shared memory': {
    head: '(D: f32[4] in shared aligned 16, S: f32[4] in global aligned 16)',
    body: COPY,
    right: '$[for k from 0 to 3: $D[$D.index(k)] = $S[$S.index(k)];]',
    wrong: {
      'one element too many':
        '$[for k from 0 to 3: $D[$D.index(k)] = $S[$S.index(k)];] $D[$D.index(3) + 1] = 7.0;',
      'one element before it':
        '$[for k from 0 to 3: $D[$D.index(k)] = $S[$S.index(k)];] $D[max($D.index(0) - 1, 0)] = 7.0;',
    },
  },
  'a row from registers': {
    head: '(D: f32[4] in global, S: f32[4] in register)',
    body: COPY,
    right: '$[for k from 0 to 3: $D[$D.index(k)] = $S[k];]',
    wrong: {
      'one element too many': '$[for k from 0 to 3: $D[$D.index(k)] = $S[k];] $D[$D.index(3) + 1] = $S[3];',
      'one element before it':
        '$[for k from 0 to 3: $D[$D.index(k)] = $S[k];] $D[max($D.index(0) - 1, 0)] = 7.0;',
      'one element too few': '$[for k from 0 to 2: $D[$D.index(k)] = $S[k];]',
      'what it reads is changed': '$[for k from 0 to 3: $D[$D.index(k)] = $S[k];] $S[0] = 99.0;',
    },
  },
  'a tile from registers': {
    head: '(D: f32[2, 4] in global, S: f32[2, 4] in register)',
    body: COPY2,
    right: '$[for k from 0 to 3: $D[$D.index(0, k)] = $S[k]; $D[$D.index(1, k)] = $S[4 + k];]',
    wrong: {
      'a row too many':
        '$[for k from 0 to 3: $D[$D.index(0, k)] = $S[k]; $D[$D.index(1, k)] = $S[4 + k]; $D[2 * $D.index(1, k) - $D.index(0, k)] = $S[k];]',
      'rows taken as contiguous': '$[for k from 0 to 7: $D[$D.index(0, 0) + $k] = $S[k];]',
    },
  },
  'a row that is not aligned': {
    head: '(D: f32[4] in register, S: f32[4] in global)',
    body: COPY,
    right: '$[for k from 0 to 3: $D[k] = $S[$S.index(k)];]',
    wrong: {
      'read as if it were': '$[for k from 0 to 3: $D[k] = $S[$S.index(0) - ($S.index(0) % 4) + $k];]',
    },
  },
  'a row that is aligned less': {
    head: '(D: f32[4] in register, S: f32[4] in global aligned 8)',
    body: COPY,
    right: '$[for k from 0 to 3: $D[k] = $S[$S.index(0) - ($S.index(0) % 2) + $k];]',
    wrong: {
      'read as if it were more': '$[for k from 0 to 3: $D[k] = $S[$S.index(0) - ($S.index(0) % 4) + $k];]',
    },
  },
  'a row of shared memory that is aligned': {
    head: '(D: f32[4] in register, S: f32[4] in shared aligned 8)',
    body: COPY,
    right: '$[for k from 0 to 3: $D[k] = $S[$S.index(0) - ($S.index(0) % 2) + $k];]',
    wrong: {
      'read as if it were more': '$[for k from 0 to 3: $D[k] = $S[$S.index(0) - ($S.index(0) % 4) + $k];]',
    },
  },
  'a sum in registers': {
    head: '(D: f32[4] in register, S: f32[4] in register)',
    body: 'iterate add [i] as S { D[i] += S[i] }',
    right: '$[for k from 0 to 3: $D[k] += $S[k];]',
    wrong: {
      'what was there is lost': '$[for k from 0 to 3: $D[k] = $S[k];]',
      'what it reads is changed': '$[for k from 0 to 3: $D[k] += $S[k]; $S[k] = 0.0;]',
    },
  },
  'a sum in global memory': {
    head: '(D: f32[1] in global, S: f32[4] in global)',
    body: 'iterate add [i, k] as SR { D[i] += S[k] }',
    right: '$[for k from 0 to 3: $D[$D.index(0)] += $S[$S.index(k)];]',
    wrong: {
      'what was there is lost':
        '$D[$D.index(0)] = 0.0; $[for k from 0 to 3: $D[$D.index(0)] += $S[$S.index(k)];]',
    },
  },
}

const cases = Object.entries(EXAMPLES).flatMap(([what, e]) =>
  (['js', 'wgsl'] as const).map((target) => [what, target, e] as const),
)
test.each(cases)('%s, %s', async (_, target, { head, body, right, wrong }) => {
  const said = async (text: string): Promise<Verdict> => {
    // The languages differ in one function and in numbers.
    const own = target === 'js' ? text.replaceAll('max(', 'Math.max(') : text
    return verdict(`instr it${head} { ${body}\n ${target} \`${own}\` }`, target)
  }
  expect(await said(right)).toEqual({ kind: 'right', why: [] })
  const found: Record<string, string> = {}
  for (const [why, text] of Object.entries(wrong)) found[why] = (await said(text)).kind
  expect(found).toEqual(Object.fromEntries(Object.keys(wrong).map((why) => [why, 'wrong'])))
})

test.each(['js', 'wgsl'] as const)('a copy that fills with zeros, %s', async (target) => {
  const said = async (filled: string): Promise<Verdict['kind']> => {
    const texts = [
      `${target} \`$[for k from 0 to 3: $D[$D.index(k)] = $S[$S.index(k)];]\``,
      `filled ${target} \`${filled}\``,
    ]
    const instr = `instr it(D: f32[4] in shared, S: f32[4] in global) { ${COPY}\n ${texts.join('\n ')} }`
    return (await verdict(instr, target)).kind
  }
  const [copied, zeros] = ['$S[$S.index(k)]', '0.0'].map(
    (value) => `$[for k from 0 to 3: $D[$D.index(k)] = ${value};]`,
  )
  expect(await said(`if ($there == 1) { ${copied} } else { ${zeros} }`)).toBe('right')
  // What is there always, never, or where it is not; what stays from the time before.
  expect(await said(copied!)).toBe('wrong')
  expect(await said(zeros!)).toBe('wrong')
  expect(await said(`if ($there == 0) { ${copied} } else { ${zeros} }`)).toBe('wrong')
  expect(await said(`if ($there == 1) { ${copied} }`)).toBe('wrong')
})

describe('verdicts', () => {
  const row = '(D: f32[4] in global, S: f32[4] in global)'

  test('for an implementation that changes its inputs in global memory', async () => {
    const text = `instr it${row} { ${COPY}
      js \`$[for k from 0 to 3: $D[$D.index(k)] = $S[$S.index(k)];] $S[$S.index(0)] = 99\` }`
    const { kind, why } = await verdict(text, 'js')
    expect([kind, why.length]).toEqual(['wrong', 1])
    expect(why[0]).toMatch(/^S, which it reads, is changed: element \d+ was -?\d and is 99$/)
  })

  const add = (text: string): string => `instr it(D: f32[4] in global, S: f32[4] in register) atomic {
    iterate add [i] as S { D[i] += S[i] }
    js \`${text}\`
    wgsl \`${text}\`
  }`
  test('for a non-atomic update', async () => {
    const text = add('$[for k from 0 to 3: $D[$D.index(k)] += $S[k];]')
    // One thread after the other cannot tell.
    expect(await verdict(text, 'js')).toEqual({ kind: 'right', why: [] })
    expect((await verdict(text, 'wgsl')).kind).toBe('wrong')
    expect((await verdict(add('$D[$D.index(0)] += $S[0];'), 'js')).kind).toBe('wrong')
  })

  test('for a missing and for a failing implementation', async () => {
    const copy = (text: string): string => `instr it${row} { ${COPY} js \`${text}\` wgsl \`${text}\` }`
    for (const target of ['js', 'wgsl'] as const) {
      const { kind, why } = await verdict(copy('frob($S[$S.index(0)]);'), target)
      expect([kind, why.length]).toEqual(['wrong', 1])
      expect(why[0]).toMatch(/frob/)
      expect(why[0]).not.toMatch(/\n\s+at /)
      expect((await verdict(copy('{'), target)).kind).toBe('wrong')
      // The device is as good as before, or another.
      expect(
        (await verdict(copy('$[for k from 0 to 3: $D[$D.index(k)] = $S[$S.index(k)];]'), target)).kind,
      ).toBe('right')
    }
  })

  test('without enough information', async () => {
    const other = `instr it${row} { ${COPY} cuda \`copy();\` }`
    expect(await verdict(other, 'js')).toEqual({ kind: 'untested', why: ['it has no text for js'] })
    const more = `instr it${row} { ${COPY} wgsl needs subgroup_size(4096) \`copy();\` }`
    const { kind, why } = await verdict(more, 'wgsl')
    expect(kind).toBe('untested')
    expect(why.join()).toMatch(/^device\/no-instruction: it needs subgroup_size\(4096\)/)
  })
})

test.each(readdirSync('kernels/instructions'))(
  'nothing in %s is wrong on the devices that are here',
  async (file) => {
    const { instructions } = await load(`kernels/instructions/${file}`)
    const all = [...instructions.values()]
    const wrong: string[] = []
    for (const instr of all)
      for (const verifier of Object.values(on)) {
        const { kind, why } = await verifier.verify(instr, all)
        if (kind === 'wrong') wrong.push(`${instr.name}: ${why.join('; ')}`)
      }
    expect(wrong).toEqual([])
  },
)
