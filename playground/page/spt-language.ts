/** `.spt` and the generated languages for CodeMirror: highlighting, completion. */

import words from 'playground:words'
import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  snippetCompletion,
} from '@codemirror/autocomplete'
import { StreamLanguage, type StreamParser } from '@codemirror/language'

interface Words {
  readonly keywords: ReadonlySet<string>
  readonly types: ReadonlySet<string>
  readonly steps: ReadonlySet<string>
}

const NUMBER = /^(?:0[xX][\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)[fuh]?/

/** Comments, strings, numbers and words: enough for `.spt` and for the texts that the compiler prints. */
const parserOf = ({ keywords, types, steps }: Words): StreamParser<{ inComment: boolean }> => ({
  startState: () => ({ inComment: false }),
  token(stream, state) {
    if (state.inComment || stream.match('/*')) {
      state.inComment = !stream.match(/^.*?\*\//)
      if (state.inComment) stream.skipToEnd()
      return 'comment'
    }
    if (stream.match(/^\/\/.*/)) return 'comment'
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return 'string'
    if (stream.match(/^(?:block|thread|cluster)\.[xyz]\b/)) return 'typeName'
    const [word] = (stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null) ?? []
    if (word !== undefined)
      return keywords.has(word)
        ? 'keyword'
        : types.has(word)
          ? 'typeName'
          : steps.has(word)
            ? 'controlKeyword'
            : 'variableName'
    if (stream.match(NUMBER)) return 'number'
    if (stream.match(/^[-+*/%<>=!&|^]+/)) return 'operator'
    stream.next()
    return null
  },
  languageData: {
    commentTokens: { line: '//', block: { open: '/*', close: '*/' } },
    closeBrackets: { brackets: ['(', '[', '{', '"'] },
  },
})

const set = (text: string): ReadonlySet<string> => new Set(text.split(' '))
const none: ReadonlySet<string> = new Set()

export const spt = StreamLanguage.define(
  parserOf({
    keywords: new Set(words.keywords),
    types: new Set(words.types),
    steps: new Set(Object.keys(words.steps)),
  }),
)
/** Printed loops. */
export const loops = StreamLanguage.define(
  parserOf({
    keywords: set(
      'kernel plan launch grid block for in if else reduce where init local let alloc while axis buffer out inout index',
    ),
    types: new Set(words.types),
    steps: none,
  }),
)
/** JavaScript, WGSL and CUDA C: their words do not contradict each other. */
export const code = StreamLanguage.define(
  parserOf({
    keywords: set(
      'if else for while do break continue return const let var fn function loop continuing struct switch case default export new extern enable override true false workgroupBarrier storageBarrier __global__ __device__ __shared__ __restrict__ __launch_bounds__ asm volatile',
    ),
    types: set(
      'void int unsigned float double bool char short long f32 f16 i32 u32 array atomic ptr vec2 vec3 vec4 storage uniform workgroup read read_write __half __nv_bfloat16 float2 float4 int2 int4 Math Float64Array Float32Array Int32Array Uint32Array Uint16Array Int8Array Uint8Array',
    ),
    steps: none,
  }),
)

/** `split LOOP by N -> (NAME, …)` as a snippet with a field for each operand. */
function snippetOf(form: string): string {
  let count = 0
  return form
    .replace(/[A-Z]+(?:[ _][A-Z]+)*/g, (operand) => `\${${++count}:${operand.toLowerCase()}}`)
    .replaceAll(', …', '')
    .replace(/\[[^\]]*\]/g, '')
}

const STEPS: readonly Completion[] = Object.entries(words.steps).flatMap(([word, forms]) =>
  forms.map((form) =>
    snippetCompletion(snippetOf(form), { label: word, detail: form.slice(word.length), type: 'function' }),
  ),
)
const KEYWORDS: readonly Completion[] = words.keywords.map((label) => ({ label, type: 'keyword', boost: -1 }))
const TYPES: readonly Completion[] = words.types.map((label) => ({ label, type: 'type' }))

/** Names that the compiler found in the latest correct text. */
export interface KnownNames {
  readonly formats: readonly string[]
  readonly names: readonly string[]
}

/** Completes steps at the beginning of a line, types after a colon, formats after `as` and `part`, otherwise names. */
export const completions =
  (known: () => KnownNames) =>
  (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[A-Za-z_]\w*/)
    const from = word?.from ?? context.pos
    const line = context.state.doc.lineAt(context.pos)
    const before = line.text.slice(0, from - line.from)
    if (/"|\/\//.test(before) || (!word && !context.explicit)) return null
    const { formats, names } = known()
    const formatOptions = formats.map((label): Completion => ({ label, type: 'class' }))
    const nameOptions = [...new Set([...names, ...wordsOf(context)])].map(
      (label): Completion => ({ label, type: 'variable' }),
    )
    const options = /^\s*(?:\w+ as|part(?: \w+ =)?)\s+$/.test(before)
      ? formatOptions
      : /[:=]\s*$/.test(before) && !before.includes('->')
        ? [...TYPES, ...nameOptions]
        : /^\s*(?:each part of \w+ as \w+ \{\s*)?$/.test(before)
          ? [...STEPS, ...KEYWORDS, ...nameOptions]
          : [...nameOptions, ...KEYWORDS]
    return options.length === 0 ? null : { from, options: [...options], validFor: /^\w*$/ }
  }

/** Identifiers of the text that are not words of the language, without the one under the cursor. */
function wordsOf(context: CompletionContext): string[] {
  const language = new Set([...words.keywords, ...words.types, ...Object.keys(words.steps)])
  const text = context.state.doc.toString().replace(/\/\/.*|"[^"\n]*"/g, (s) => ' '.repeat(s.length))
  const found = new Set<string>()
  for (const { 0: word, index } of text.matchAll(/[A-Za-z_]\w*/g))
    if (!language.has(word) && index + word.length !== context.pos) found.add(word)
  return [...found]
}
