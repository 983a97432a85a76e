/**
 * SVG → PNG by resvg compiled to WebAssembly: identical bytes on every machine. resvg has no fonts, so those of a package are
 * used. Both packages are optional.
 */

/** Approximate width of the PNG in pixels: sharp on pages that are about 1,000 pixels wide. */
const TARGET_WIDTH = 960
const FONTS = ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono']

type Renderer = (svg: string) => Uint8Array

let rendererPromise: Promise<Renderer | undefined> | undefined

/** A PNG on a white background; `undefined` if the optional packages are not installed. */
export async function rasterize(svg: string): Promise<Uint8Array | undefined> {
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
