/** Figures: an SVG drawing with its representations in notebooks. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../ast/diagnostics/expect-argument.ts'
import { CellOutput, type MimeBundle } from './display.ts'

/** A drawing. */
export class Figure extends CellOutput {
  constructor(
    /** The text of an SVG file. */
    readonly svg: string,
    /** Text alternative for screen readers. */
    readonly title: string,
  ) {
    super()
  }

  /**
   * The figure as a PNG file on a white background.
   * @throws SptError `notebook/no-renderer` if the optional rendering packages are not installed
   */
  async png(): Promise<Uint8Array> {
    return (
      (await rasterize(this.svg)) ??
      failWith('notebook/no-renderer', 'nothing is installed that makes a PNG of SVG', {
        expected: 'the packages @resvg/resvg-wasm and dejavu-fonts-ttf, in Node or Deno',
        hint: 'npm i @resvg/resvg-wasm dejavu-fonts-ttf',
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

// SVG → PNG by resvg compiled to WebAssembly: identical bytes on every machine. resvg has no fonts, so those
// of a package are used. Both packages are optional.

/** Approximate width of the PNG in pixels: sharp on pages that are about 1,000 pixels wide. */
const TARGET_WIDTH = 960
const FONTS = ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono']

type Renderer = (svg: string) => Uint8Array

let rendererPromise: Promise<Renderer | undefined> | undefined

/** A PNG on a white background; `undefined` if the optional packages are not installed. */
async function rasterize(svg: string): Promise<Uint8Array | undefined> {
  rendererPromise ??= loadRenderer()
  return (await rendererPromise)?.(svg)
}

async function loadRenderer(): Promise<Renderer | undefined> {
  const files = await readFiles().catch(() => undefined)
  if (!files) return undefined
  const { initWasm, Resvg } = await import('@resvg/resvg-wasm')
  // The module is initialised once per process; a second initialisation throws.
  await initWasm(files.wasm).catch((e) => {
    if (!/already/i.test(String(e))) throw e
  })
  const font = {
    fontBuffers: [...files.fonts],
    defaultFontFamily: 'DejaVu Sans',
    sansSerifFamily: 'DejaVu Sans',
    monospaceFamily: 'DejaVu Sans Mono',
  }
  return (svg) => {
    const unscaled = new Resvg(svg)
    const zoom = Math.min(2, Math.max(1, TARGET_WIDTH / unscaled.width))
    unscaled.free()
    const scaled = new Resvg(svg, { font, background: 'white', fitTo: { mode: 'zoom', value: zoom } })
    const image = scaled.render()
    const png = image.asPng()
    image.free()
    scaled.free()
    return png
  }
}

/** Reads the WebAssembly module and the fonts. @throws if a package is missing, and in hosts without file access */
async function readFiles(): Promise<{ readonly wasm: Uint8Array; readonly fonts: readonly Uint8Array[] }> {
  const { createRequire } = await import('node:module')
  const { readFile } = await import('node:fs/promises')
  const { resolve } = createRequire(import.meta.url)
  const read = (file: string): Promise<Uint8Array> => readFile(resolve(file))
  return {
    wasm: await read('@resvg/resvg-wasm/index_bg.wasm'),
    fonts: await Promise.all(FONTS.map((f) => read(`dejavu-fonts-ttf/ttf/${f}.ttf`))),
  }
}
