/** Figures: SVG, and the picture that notebooks store of it. */
import { fail } from '../ast/diagnostic.ts'
import { expectArgument } from '../ast/expect-argument.ts'
import { CellOutput, type MimeBundle } from './display.ts'
import { rasterized } from './rasterize.ts'

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
   * A PNG file of it, on white.
   * @throws SptError `notebook/no-renderer` where the packages that draw it are not installed
   */
  async png(): Promise<Uint8Array> {
    return (
      (await rasterized(this.svg)) ??
      fail({
        code: 'notebook/no-renderer',
        message: 'nothing is installed that makes a PNG of SVG',
        expected: 'the packages @resvg/resvg-wasm and dejavu-fonts-ttf, in Node or Deno',
        hint: 'npm install @resvg/resvg-wasm dejavu-fonts-ttf',
      })
    )
  }

  /** A PNG, or SVG where nothing is installed that draws one. Never both: viewers that empty SVG prefer it. */
  override async bundle(): Promise<MimeBundle> {
    const png = await rasterized(this.svg)
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

/** A picture from the source of an SVG file, such as the `svg` of a format. @throws SptError `api/argument` */
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
  // In pieces: the arguments of a call have a limit.
  for (let k = 0; k < bytes.length; k += 0x8000) text += String.fromCharCode(...bytes.subarray(k, k + 0x8000))
  return btoa(text)
}
