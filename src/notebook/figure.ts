/** Figures: an SVG drawing with its representations in notebooks. */
import { fail } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../ast/diagnostics/expect-argument.ts'
import { CellOutput, type MimeBundle } from './display.ts'
import { rasterize } from './rasterize.ts'

/** A drawing. */
export class Figure extends CellOutput {
  /** The text of an SVG file. */
  readonly svg: string
  /** Text alternative for screen readers. */
  readonly title: string

  constructor(svg: string, title: string) {
    super()
    this.svg = svg
    this.title = title
  }

  /**
   * The figure as a PNG file on a white background.
   * @throws SptError `notebook/no-renderer` if the optional rendering packages are not installed
   */
  async png(): Promise<Uint8Array> {
    return (
      (await rasterize(this.svg)) ??
      fail({
        code: 'notebook/no-renderer',
        message: 'nothing is installed that makes a PNG of SVG',
        expected: 'the packages @resvg/resvg-wasm and dejavu-fonts-ttf, in Node or Deno',
        hint: 'npm install @resvg/resvg-wasm dejavu-fonts-ttf',
      })
    )
  }

  /** A PNG, or SVG if no renderer is installed. Never both: viewers that remove the contents of SVG prefer SVG to PNG. */
  override async bundle(): Promise<MimeBundle> {
    const png = await rasterize(this.svg)
    const picture: MimeBundle = png ? { 'image/png': base64(png) } : { 'image/svg+xml': this.svg }
    return { ...picture, 'text/plain': this.toString() }
  }

  override html(): string {
    return this.svg
  }

  override toString(): string {
    return `[figure: ${this.title}]`
  }
}

/** A figure from the text of an SVG file, such as the `svg` of a format. @throws SptError `api/argument` */
export function picture(svg: string, title = 'a picture'): Figure {
  expectArgument(
    typeof svg === 'string' && /^\s*(?:<\?xml[^>]*>\s*)?<svg\s/.test(svg),
    'a picture',
    svg,
    'the text of an SVG file',
  )
  return new Figure(svg, title)
}

function base64(bytes: Uint8Array): string {
  let text = ''
  // In chunks, because the number of arguments of a call is limited.
  for (let k = 0; k < bytes.length; k += 0x8000) text += String.fromCharCode(...bytes.subarray(k, k + 0x8000))
  return btoa(text)
}
