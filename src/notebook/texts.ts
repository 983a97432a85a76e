/** Programs, stages and emitted texts. */
import { expectKernel } from '../api/expect-kernel.ts'
import type { Kernel } from '../api/kernel.ts'
import { expectArgument, expectOptions } from '../ast/expect-argument.ts'
import { CellOutput, type MimeBundle } from './display.ts'
import { highlighted, type Language } from './highlight.ts'

export interface TextOptions {
  /** Maximum number of lines shown; the number of further lines is stated. 60. */
  readonly limit?: number | undefined
}

class Text extends CellOutput {
  readonly #text: string
  readonly #language: Language
  readonly #more: number

  constructor(text: string, language: Language, { limit = 60 }: TextOptions) {
    super()
    const lines = text.trimEnd().split('\n')
    this.#text = lines.slice(0, limit).join('\n')
    this.#more = Math.max(0, lines.length - limit)
    this.#language = language
  }

  override async bundle(): Promise<MimeBundle> {
    return { 'text/html': this.html(), 'text/plain': this.toString() }
  }

  override html(): string {
    const more = this.#more > 0 ? `\n<p>${this.#rest()}</p>` : ''
    return `<pre><code>${highlighted(this.#text, this.#language)}</code></pre>${more}`
  }

  override toString(): string {
    return this.#more > 0 ? `${this.#text}\n${this.#rest()}` : this.#text
  }

  #rest(): string {
    return `… and ${this.#more} more lines`
  }
}

/** A text with its words in colours. @throws SptError `api/argument` */
export function code(text: string, language: Language = 'spt', options: TextOptions = {}): CellOutput {
  expectOptions('code', options, ['limit'])
  expectArgument(typeof text === 'string', 'a text', text, 'a string')
  return new Text(text, language, options)
}

/** A kernel at stage 1 (coordinates), 2 (positions) or 3 (memory). @throws SptError as `Kernel.show` */
export const stage = (kernel: Kernel, at: 1 | 2 | 3, options: TextOptions = {}): CellOutput =>
  code(expectKernel(kernel).show(at), 'spt', options)

/** The steps of a kernel in the syntax of schedules. */
export const steps = (kernel: Kernel, options: TextOptions = {}): CellOutput =>
  code(expectKernel(kernel).trace.join('\n'), 'spt', options)

/** The texts that a kernel becomes for a target. @throws SptError as `Kernel.emit` */
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
