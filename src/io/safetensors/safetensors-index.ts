/**
 * Reads `.safetensors.index.json`, the index of a model in several files (shards): `{"weight_map": {"layer.0.weight":
 * "model-00001-of-00002.safetensors", …}}`. Shards must be in the same folder.
 */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { ByteSource } from '../byte-source.ts'
import { quoteName, readJson } from '../json-reader.ts'
import { openSafetensors, type Safetensors, tensorAt, unknownTensor } from './safetensors.ts'
import { MAX_HEADER_BYTES } from './safetensors-header.ts'

function rejectIndex(file: string, what: string): never {
  return fail({
    code: 'io/safetensors-index',
    message: `${file}: the index ${what}`,
    expected: '{"weight_map": {"tensor": "file.safetensors", …}}, the files in the same folder',
  })
}

/** The file of each tensor. @throws SptError `io/safetensors-index` */
async function readIndex(source: ByteSource): Promise<ReadonlyMap<string, string>> {
  const { name } = source
  const json = await readJson(source, MAX_HEADER_BYTES, (what) => rejectIndex(name, what))
  let files: Map<string, string> | undefined
  json.object((key) => {
    if (key !== 'weight_map') return json.skip()
    files = new Map()
    json.object((tensor) => {
      const file = json.string()
      // A plain name: a downloaded index must not refer to files outside its folder.
      if (!/^[^/\\:\0]+\.safetensors$/i.test(file))
        rejectIndex(
          name,
          `has the tensor ${quoteName(tensor)} in ${quoteName(file)}, which is no file of its folder`,
        )
      files!.set(tensor, file)
    })
  })
  json.end()
  return files ?? rejectIndex(name, 'has no weight_map')
}

function openShard(source: ByteSource, file: string): Promise<Safetensors> {
  if (!source.beside)
    return rejectIndex(source.name, `names the file ${quoteName(file)}, and only itself was given`)
  return source.beside(file).then(openSafetensors)
}

/**
 * The shard that contains the tensor at `address`, and its name there. @throws SptError `io/safetensors-index`, and
 * errors of opening it
 */
export async function openShardOf(
  source: ByteSource,
  address: string | undefined,
): Promise<{ readonly file: Safetensors; readonly tensor: string }> {
  const files = await readIndex(source)
  const tensor = tensorAt(source.name, [...files.keys()], address)
  const shard = files.get(tensor)!
  const file = await openShard(source, shard)
  if (!file.entries.has(tensor)) rejectMissing(source.name, shard, tensor)
  return { file, tensor }
}

function rejectMissing(index: string, shard: string, tensor: string): never {
  return rejectIndex(index, `has the tensor ${quoteName(tensor)} in ${quoteName(shard)}, which has it not`)
}

/** All shards combined. @throws SptError `io/safetensors-index` if they and the index list different tensors */
export async function openShards(source: ByteSource): Promise<Safetensors> {
  const { name } = source
  const files = await readIndex(source)
  const shards = new Map<string, Safetensors>()
  for (const file of new Set(files.values())) shards.set(file, await openShard(source, file))
  for (const [tensor, file] of files)
    if (!shards.get(file)!.entries.has(tensor)) rejectMissing(name, file, tensor)
  for (const [file, { entries }] of shards)
    for (const tensor of entries.keys())
      if (files.get(tensor) !== file)
        rejectIndex(name, `does not list the tensor ${quoteName(tensor)}, which ${quoteName(file)} has`)
  const opened = [...shards.values()]
  const entries = new Map(opened.flatMap((s) => [...s.entries]))
  const shardOf = (tensor: string): Safetensors => {
    const file = files.get(tensor) ?? unknownTensor(name, tensor, [...entries.keys()])
    return shards.get(file)!
  }
  return {
    name,
    entries,
    // If several shards define a key, the first one's value is used.
    metadata: new Map(opened.toReversed().flatMap((s) => [...s.metadata])),
    dense: async (tensor, dtype) => shardOf(tensor).dense(tensor, dtype),
    chunks: (tensor) => shardOf(tensor).chunks(tensor),
  }
}
