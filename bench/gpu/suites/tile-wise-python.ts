/** What PyTorch has for the suite `tile-wise`: 2:4 through cuSPARSELt, the dense layer, and two layers with their epilogues. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nOfM } from '../../../src/prune.ts'
import { entryOf, type LayerCase, type PythonResult, pythonPeers } from '../../peers/python.ts'
import type { Entry } from '../case.ts'
import { keptOf } from '../layer-contestants.ts'
import { type Kept, type Layer, type LayerSize, sizeName } from '../pruned-layers.ts'
import type { Session } from '../session.ts'

/** Sparsity 2:4 has. */
const HALF = 0.5

export const networkName = (inputs: number, hidden: number, columns: number): string =>
  `${inputs} → ${hidden} → ${inputs}, M = ${columns}`

/** Pairs of layers of which one takes what the other gives, the wider one first. */
export const networksOf = (layers: readonly Layer[]): readonly (readonly [Layer, Layer])[] =>
  layers.flatMap((first) =>
    layers
      .filter(
        ({ size }) =>
          first.size.outputs > first.size.inputs &&
          size.inputs === first.size.outputs &&
          size.outputs === first.size.inputs &&
          size.columns === first.size.columns,
      )
      .map((second) => [first, second] as const),
  )

/** 2:4 by processes of its own: an instruction that the chip does not have ends whatever else a process has there. */
export async function layerPeers(s: Session, layers: readonly Layer[]): Promise<readonly PythonResult[]> {
  const halved: (Kept | undefined)[] = []
  for (const layer of layers) halved.push(await keptOf(s, layer, nOfM({ n: 2, m: 4 }), HALF))
  const dense = await pythonPeers('tile_wise.py', s, (folder) => [
    ...layers.map(({ size, bits }, k): LayerCase => {
      const file = join(folder, String(k))
      writeFileSync(`${file}-values`, bits)
      return { id: idOf(size, 'dense'), file, what: 'dense', ...size }
    }),
    ...networksOf(layers).map(([{ size }]): LayerCase => {
      const id = networkName(size.inputs, size.outputs, size.columns)
      return { id, file: '', what: 'network', ...size }
    }),
  ])
  const half: PythonResult[] = []
  for (const what of ['2:4', '2:4 searched'] as const) {
    const found = await pythonPeers('tile_wise.py', s, (folder) =>
      layers.flatMap(({ size }, k): LayerCase[] => {
        const kept = halved[k]
        if (!kept) return []
        const file = join(folder, String(k))
        writeFileSync(`${file}-2of4`, scattered(kept, size))
        return [{ id: idOf(size, '2:4'), file, what, ...size }]
      }),
    )
    half.push(...found)
  }
  return [...dense, ...half]
}

const idOf = (size: LayerSize, what: LayerCase['what']): string => `${sizeName(size)}, ${what}`

export const resultsOf = (
  python: readonly PythonResult[],
  size: LayerSize,
  what: LayerCase['what'],
): Entry[] => python.filter((r) => r.id === idOf(size, what)).map(entryOf)

/** Zeros where nothing is left. */
function scattered({ csr, bits }: Kept, { outputs, inputs }: LayerSize): Uint16Array {
  const out = new Uint16Array(outputs * inputs)
  for (let r = 0; r < outputs; r++)
    for (let e = csr.indptr[r]!; e < csr.indptr[r + 1]!; e++) out[r * inputs + csr.indices[e]!] = bits[e]!
  return out
}
