/** The files of a model as layers: weights, gradients, and existing masks. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { SafetensorsPart, Weights } from '../../io/index.ts'
import { fileSource, maskPart, masksOf, openWeights, PRUNED } from '../../io/index.ts'
import { typeNamed } from '../../io/safetensors/safetensors-header.ts'
import { unknownEnding } from '../../io/unknown-ending.ts'
import { matches } from '../../prune/options.ts'
import { type Layers, type Mask, type Pruned, unionMasks } from '../../prune.ts'
import type { Call } from '../arguments/command.ts'

export interface Model {
  readonly weights: Weights
  readonly layers: Layers
}

/** @throws SptError `io/…`, also if the gradients do not match the layers */
export async function openModel(call: Call): Promise<Model> {
  const options = { transposed: call.flag('transposed') }
  const weights = await openWeights(call.args[0]!, options)
  checkLayers(weights)
  const types = new Map(weights.tensors.map((t) => [t.name, t.type]))
  const shapes = weights.layers.map((l) => ({ ...l, valueBytes: typeNamed(types.get(l.name)!)!.bits / 8 }))
  const layers: Layers = { shapes, weights: (k) => weights.weights(shapes[k]!.name) }
  const path = call.one('gradients')
  if (path === undefined) return { weights, layers }
  const gradients = await openWeights(path, options)
  const exclude = call.many('exclude')
  const isExcluded = (name: string): boolean => exclude.some((glob) => matches(glob, name))
  checkGradients(weights, gradients, (name) => !isExcluded(name))
  return { weights, layers: { ...layers, gradients: (k) => gradients.weights(shapes[k]!.name) } }
}

/** Checks that names of `--exclude` and `--limit` match layers or copied tensors. @throws SptError `prune/unknown-layer` */
export function checkLayerNames(call: Call, { weights: { name: file, layers, tensors } }: Model): void {
  const limits = call.many('limit').map((text) => text.slice(0, text.lastIndexOf('=')))
  for (const [option, globs] of Object.entries({ exclude: call.many('exclude'), limit: limits }))
    for (const glob of globs) {
      const copied = tensors.find((t) => matches(glob, t.name))
      if (!copied || layers.some((l) => matches(glob, l.name))) continue
      failWith(
        'prune/unknown-layer',
        `--${option} ${glob}: ${file}#${copied.name}, ${copied.shape.join(' × ') || 'a scalar'} of ${copied.type}, is not a layer, and is copied unchanged`,
        { expected: 'names of layers', hint: `omit --${option} ${glob}` },
      )
    }
}

/** @throws SptError `prune/layers` for a model without layers, naming one of its tensors */
function checkLayers({ name, layers, tensors: [first] }: Weights): void {
  if (layers.length > 0) return
  const tensorText = first
    ? `${first.name} is ${first.shape.join(' × ') || 'a scalar'} of ${first.type}`
    : 'it is empty'
  failWith('prune/layers', `${name} has no layers: ${tensorText}`, { expected: 'at least one layer' })
}

/** Checks names and shapes before data are read. @throws SptError `io/unknown-array`, `io/no-layer`, `io/shape-mismatch` */
function checkGradients(weights: Weights, gradients: Weights, isPruned: (name: string) => boolean): void {
  const shapeText = (file: Weights, name: string): string =>
    file.part(file.layer(name).name).shape.join(' × ')
  const names = new Set(gradients.tensors.map((t) => t.name))
  for (const { name } of weights.layers.filter((l) => isPruned(l.name))) {
    if (!names.has(name))
      failWith('io/unknown-array', `${gradients.name} has no gradients of the layer '${name}'`, {
        // Gradients of other layers are not suggested.
        lookup: { name, candidates: [...names].filter((n) => !weights.tensors.some((t) => t.name === n)) },
        expected: `gradients of each layer of ${weights.name} that is not excluded`,
      })
    const [shape, gradientShape] = [shapeText(weights, name), shapeText(gradients, name)]
    if (shape !== gradientShape)
      failWith('io/shape-mismatch', `the gradients ${gradients.name}#${name} are ${gradientShape}`, {
        expected: `${shape}, as the layer in ${weights.name}`,
      })
  }
}

/** Masks of the elements that an earlier stage kept, in tiles and outside, for each layer. */
export async function readStageMasks(folder: string, { weights }: Model): Promise<readonly Mask[]> {
  const masks = await readMasks(join(folder, PRUNED.masks), weights)
  const path = join(folder, PRUNED.rest)
  if (!(await stat(path).catch(() => null))) return masks
  return unionMasks({ masks, rest: await readMasks(path, weights) })
}

async function readMasks(path: string, weights: Weights): Promise<Mask[]> {
  const masks = await masksOf(await fileSource(path), weights)
  return weights.layers.map(
    ({ name }) =>
      masks.get(name) ??
      failWith('io/unknown-array', `${path} has no mask for the layer '${name}'`, {
        expected: `a mask of each layer of ${weights.name}`,
        hint: 'use masks of the same model',
      }),
  )
}

const MASKS_EXTENSION = '.safetensors'

/** Masks given by the user for some of the layers. @throws SptError `io/unknown-extension`, and as `masksOf` */
export async function readGivenMasks(path: string, { weights }: Model): Promise<ReadonlyMap<string, Mask>> {
  if (!path.toLowerCase().endsWith(MASKS_EXTENSION)) unknownEnding(path, [MASKS_EXTENSION], 'read masks from')
  return masksOf(await fileSource(path), weights)
}

/** Output files of a pruned model by name; each layer is assembled when it is written. */
export function outputParts(
  { weights }: Model,
  { masks, rest }: Pruned,
): ReadonlyMap<string, readonly SafetensorsPart[]> {
  const { layers } = weights
  const indices = new Map(layers.map((l, k) => [l.name, k]))
  const keptMask = (k: number): Mask =>
    unionMasks({ masks: [masks[k]!], ...(rest && { rest: [rest[k]!] }) })[0]!
  const maskParts = (layerMasks: readonly Mask[]): SafetensorsPart[] =>
    layers.map((l, k) => maskPart(weights, l, layerMasks[k]!))
  return new Map([
    [
      PRUNED.weights,
      weights.tensors.map(({ name }) => {
        const k = indices.get(name)
        const part = weights.part(name)
        return k === undefined ? part : { ...part, chunks: () => weights.masked(name, keptMask(k)).chunks() }
      }),
    ],
    [PRUNED.masks, maskParts(masks)],
    ...(rest ? [[PRUNED.rest, maskParts(rest)] as const] : []),
  ])
}
