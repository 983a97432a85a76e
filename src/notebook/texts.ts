/** Programs, stages and emitted code with syntax highlighting. */

import { expectKernel, type Kernel } from '../api/kernels/kernel.ts'
import { expectArgument, expectOptions } from '../ast/diagnostics/expect-argument.ts'
import { AXIS_KINDS } from '../ast/parse/axisdef.ts'
import { DTYPES } from '../ir/values/dtype.ts'
import { escapeXml } from '../pictures/picture/svg.ts'
import { CellOutput } from './display.ts'

export interface TextOptions {
  /** Maximum number of lines shown; the number of further lines is stated. Default: 60. */
  readonly limit?: number | undefined
}

class Text extends CellOutput {
  readonly #text: string
  readonly #hiddenLines: number

  constructor(
    text: string,
    private readonly language: Language,
    { limit = 60 }: TextOptions,
  ) {
    super()
    const lines = text.trimEnd().split('\n')
    this.#text = lines.slice(0, limit).join('\n')
    this.#hiddenLines = Math.max(0, lines.length - limit)
  }

  override html(): string {
    const note = this.#hiddenLines > 0 ? `\n<p>${this.#hiddenText()}</p>` : ''
    return `<pre><code>${highlight(this.#text, this.language)}</code></pre>${note}`
  }

  override toString(): string {
    return this.#hiddenLines > 0 ? `${this.#text}\n${this.#hiddenText()}` : this.#text
  }

  #hiddenText(): string {
    return `… and ${this.#hiddenLines} more lines`
  }
}

/** A text with syntax highlighting. @throws SptError `api/argument` */
export function code(text: string, language: Language = 'spt', options: TextOptions = {}): CellOutput {
  expectOptions('code', options, ['limit'])
  expectArgument(typeof text === 'string', 'a text', text, 'a string')
  return new Text(text, language, options)
}

/** A kernel at stage 1 (coordinates), 2 (positions) or 3 (memory). @throws SptError as `Kernel.show` */
export const stage = (kernel: Kernel, at: 1 | 2 | 3, options: TextOptions = {}): CellOutput =>
  code(expectKernel(kernel).show(at), 'spt', options)

/** The applied steps of a kernel, in the syntax of schedules. */
export const steps = (kernel: Kernel, options: TextOptions = {}): CellOutput =>
  code(expectKernel(kernel).trace.join('\n'), 'spt', options)

/** The code emitted for a kernel on a target. @throws SptError as `Kernel.emit` */
export function generatedCode(
  kernel: Kernel,
  target: 'js' | 'wgsl' | 'cuda',
  options: TextOptions = {},
): CellOutput {
  const texts = expectKernel(kernel)
    .emit(target)
    .map((m) => m.text.trimEnd())
  return code(texts.join('\n\n'), target, options)
}

// Syntax highlighting of source text.

/** `spt`: programs, schedules and the printed stages. */
export type Language = 'spt' | 'js' | 'wgsl' | 'cuda' | 'c' | 'text'

type TokenKind = 'comment' | 'string' | 'number' | 'keyword' | 'type'

const wordSet = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/))

const C_WORDS = 'if else for while do break continue return const struct switch case default'
const C_TYPES = 'void int unsigned float double bool char short long size_t'

const LANGUAGES: Readonly<Record<Language, Readonly<Record<'keyword' | 'type', ReadonlySet<string>>>>> = {
  spt: {
    keyword:
      wordSet(`import kernel plan launch grid block axis buffer iterate as in out inout local index let alloc if else for
      reduce where init while format over part map inverse with partition bucket split into by longer rows schedule choose
      when otherwise use each of reorder fuse attach peel tile reverse serpentine bind to unroll vectorize require cache_read
      cache_write at accumulate within pipeline cluster tensorize compute_at compute_inline fission after rfactor atomic combine merge join
      as_written instr memory define extends and or not barrier register shared`),
    type: wordSet(`size ${DTYPES.join(' ')} real ${AXIS_KINDS.join(' ')}`),
  },
  js: {
    keyword: wordSet(
      `${C_WORDS} let var function new of in async await import export from class null true false`,
    ),
    type: wordSet('Math Float64Array Float32Array Int32Array Uint32Array Uint16Array Int8Array Uint8Array'),
  },
  wgsl: {
    keyword: wordSet(`${C_WORDS} let var fn loop continuing enable true false override`),
    type: wordSet('f32 f16 i32 u32 bool vec2 vec3 vec4 array atomic ptr storage uniform workgroup function'),
  },
  cuda: {
    keyword: wordSet(
      `${C_WORDS} extern __global__ __device__ __shared__ __restrict__ __launch_bounds__ asm true false`,
    ),
    type: wordSet(`${C_TYPES} float2 float4 int2 int4 uint2 uint4 __half __half2 __nv_bfloat16`),
  },
  c: { keyword: wordSet(`${C_WORDS} static inline restrict`), type: wordSet(C_TYPES) },
  text: { keyword: wordSet(''), type: wordSet('') },
}

const COLORS: Readonly<Record<TokenKind, string>> = {
  comment: '#6e7781',
  string: '#0a3069',
  number: '#0550ae',
  keyword: '#cf222e',
  type: '#8250df',
}

const TOKEN =
  /(?<comment>\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)|(?<number>\b(?:0[xX][\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)[fuh]?\b)|(?<word>[A-Za-z_]\w*)/g

function highlight(text: string, language: Language): string {
  if (language === 'text') return escapeXml(text)
  let out = ''
  let end = 0
  for (const match of text.matchAll(TOKEN)) {
    const kind = kindOf(match.groups ?? {}, LANGUAGES[language])
    if (!kind) continue
    out += `${escapeXml(text.slice(end, match.index))}<span style="color:${COLORS[kind]}">${escapeXml(match[0])}</span>`
    end = match.index + match[0].length
  }
  return out + escapeXml(text.slice(end))
}

function kindOf(
  groups: Readonly<Record<string, string | undefined>>,
  { keyword, type }: (typeof LANGUAGES)[Language],
): TokenKind | undefined {
  const { comment, string, number, word = '' } = groups
  if (comment !== undefined) return 'comment'
  if (string !== undefined) return 'string'
  if (number !== undefined) return 'number'
  if (keyword.has(word)) return 'keyword'
  return type.has(word) ? 'type' : undefined
}
