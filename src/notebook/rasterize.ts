/**
 * SVG → PNG by resvg compiled to WebAssembly: identical bytes on every machine. resvg has no fonts, so those of a package are
 * used. Both packages are optional.
 */

/** Pixels across, about: sharp where pages are some 1,000 wide. */
const ACROSS = 960
const FONTS = ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono']

type Rasterize = (svg: string) => Uint8Array

let loading: Promise<Rasterize | undefined> | undefined

/** A PNG on white; `undefined` where nothing is installed that makes one. */
export async function rasterized(svg: string): Promise<Uint8Array | undefined> {
  loading ??= load()
  return (await loading)?.(svg)
}

async function load(): Promise<Rasterize | undefined> {
  const found = await filesOf().catch(() => undefined)
  if (!found) return undefined
  const { initWasm, Resvg } = await import('@resvg/resvg-wasm')
  // The module is one for the process, and whoever comes second is refused.
  await initWasm(found.wasm).catch((e) => {
    if (!/already/i.test(String(e))) throw e
  })
  const font = {
    fontBuffers: [...found.fonts],
    defaultFontFamily: 'DejaVu Sans',
    sansSerifFamily: 'DejaVu Sans',
    monospaceFamily: 'DejaVu Sans Mono',
  }
  return (svg) => {
    const natural = new Resvg(svg)
    const value = Math.min(2, Math.max(1, ACROSS / natural.width))
    natural.free()
    const scaled = new Resvg(svg, { font, background: 'white', fitTo: { mode: 'zoom', value } })
    const image = scaled.render()
    const png = image.asPng()
    image.free()
    scaled.free()
    return png
  }
}

/** @throws where a package is missing, and in hosts without files */
async function filesOf(): Promise<{ readonly wasm: Uint8Array; readonly fonts: readonly Uint8Array[] }> {
  const { createRequire } = await import('node:module')
  const { readFile } = await import('node:fs/promises')
  const { resolve } = createRequire(import.meta.url)
  const read = (file: string): Promise<Uint8Array> => readFile(resolve(file))
  return {
    wasm: await read('@resvg/resvg-wasm/index_bg.wasm'),
    fonts: await Promise.all(FONTS.map((f) => read(`dejavu-fonts-ttf/ttf/${f}.ttf`))),
  }
}
