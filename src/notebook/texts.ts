/** Programs, stages and emitted code with syntax highlighting. */
import { expectKernel } from '../api/kernels/expect-kernel.ts'
import type { Kernel } from '../api/kernels/kernel.ts'
import { expectArgument, expectOptions } from '../ast/diagnostics/expect-argument.ts'
import { CellOutput, type MimeBundle } from './display.ts'
import { highlight, type Language } from './highlight.ts'

export interface TextOptions {
  /** Maximum number of lines shown; the number of further lines is stated. Default: 60. */
  readonly limit?: number | undefined
}

class Text extends CellOutput {
  readonly #text: string
  readonly #language: Language
  readonly #hiddenLines: number

  constructor(text: string, language: Language, { limit = 60 }: TextOptions) {
    super()
    const lines = text.trimEnd().split('\n')
    this.#text = lines.slice(0, limit).join('\n')
    this.#hiddenLines = Math.max(0, lines.length - limit)
    this.#language = language
  }

  override async bundle(): Promise<MimeBundle> {
    return { 'text/html': this.html(), 'text/plain': this.toString() }
  }

  override html(): string {
    const note = this.#hiddenLines > 0 ? `\n<p>${this.#hiddenText()}</p>` : ''
    return `<pre><code>${highlight(this.#text, this.#language)}</code></pre>${note}`
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
