/** Command lines that are wrong in one way each. `{x}` in arguments is the file `x` of the test's folder. */
import { npzChunks } from '../../src/io/numpy/npz-write.ts'
import { MATRIX, PROGRAM } from './support.ts'

const bytes = (chunks: Iterable<Uint8Array>): Uint8Array => Buffer.concat([...chunks])

function csr(parts: {
  indptr?: number[]
  indices?: number[]
  data?: number[]
  shape?: number[]
}): Uint8Array {
  const { indptr = [0, 2, 2, 4], indices = [0, 2, 1, 3], data = [1, 2, 3, 4], shape = [3, 4] } = parts
  const ints = (x: number[]) => ({ values: Int32Array.from(x), shape: [x.length], dtype: 'i32' as const })
  return bytes(
    npzChunks({
      indices: ints(indices),
      indptr: ints(indptr),
      format: { text: 'csr' },
      shape: ints(shape),
      data: { values: Float32Array.from(data), shape: [data.length], dtype: 'f32' },
    }),
  )
}

const npz = csr({})
const WIDE = `kernel wide(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  buffer A: f64[i] in
  buffer C: f64[i, j] out
  iterate s [i, j] as SS {
    C[i, j] = A[i]
  }
}
`
const THREADS = `${PROGRAM}
schedule mul.wide {
  split i by 1024 -> (io, ii)
  bind io to block.x, ii to thread.x
}

schedule mul.illegal {
  split j by 4
  split ghost by 2
}

schedule mul.late {
  split i by 4
  attach i to j
}
`
const CONVOLUTION =
  'run sparsetile/kernels/convolution.spt --kernel convolution --size voxels=2 --size out_voxels=2 --size channels=1 --size out_channels=1 --bind imap={map.npz}#imap --bind omap={map.npz}#omap'
const line = (xs: readonly number[]) =>
  ({ values: Int32Array.from(xs), shape: [xs.length], dtype: 'i32' }) as const
const MAP_DATA = bytes(
  npzChunks({
    imap: line([0, 1, 1]),
    omap: line([1, 0, 1]),
    offsets: line([0, 2, 2, 3]),
    late: line([1, 2, 2, 3]),
    falling: line([0, 2, 1, 3]),
    long: line([0, 2, 2, 4]),
    floats: { values: Float32Array.of(0, 2, 2, 3), shape: [4], dtype: 'f32' },
  }),
)
const SEVERAL = `kernel one(n: size) {
  axis i = dense_fixed(n)
  buffer C: f32[i] out
  iterate s [i] as S { C[i] = 1 }
}

kernel two(n: size) {
  axis i = dense_fixed(n)
  buffer C: f32[i] out
  iterate s [i] as S { C[i] = 2 }
}
`
const CHIP = `${PROGRAM}
schedule mul.auto choose {
  when (capability >= 9.0) blocks(9)
  otherwise gpu
}
`
const FIGURES = `${PROGRAM}
schedule mul.auto choose {
  when (not cpu and has(subgroup_size(32)) and d <= 2 * processors) blocks(9)
  otherwise gpu
}
`
const SPACE = `${PROGRAM}
schedule mul.some(most = 8) choose by search {
  by in 2, 4 .. most where (by <= d)
  use gpu(by) or blocks(by)
}
`
const MTX = '%%MatrixMarket matrix coordinate real general\n'

/** A header and its data, or so many bytes, all 0. */
function safetensors(header: string, data: number | Uint8Array): Uint8Array {
  const out = Buffer.concat([
    Buffer.alloc(8 + header.length),
    typeof data === 'number' ? Buffer.alloc(data) : data,
  ])
  out.writeBigUInt64LE(BigInt(header.length))
  out.write(header, 8)
  return new Uint8Array(out)
}

/** Of a model with the one layer W, 3 × 4. */
const ofW = (type: string, shape: string, data: number | Uint8Array, name = 'W'): Uint8Array =>
  safetensors(
    `{"${name}":{"dtype":"${type}","shape":[${shape}],"data_offsets":[0,${typeof data === 'number' ? data : data.length}]}}`,
    data,
  )
const notFinite = (value: number): Uint8Array =>
  new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, value, 7, 8, 9, 10, 11, 12).buffer)

export const FILES: Readonly<Record<string, string | Uint8Array>> = {
  'folder.spt': 'import "./"',
  'mul.spt': PROGRAM,
  'map.npz': MAP_DATA,
  'threads.spt': THREADS,
  'several.spt': SEVERAL,
  'wide.spt': WIDE,
  'chip.spt': CHIP,
  'figures.spt': FIGURES,
  'space.spt': SPACE,
  'imports.spt': 'import "./nowhere.spt"\n',
  'empty.spt': '',
  'a.mtx': MATRIX,
  'other.mtx': `${MTX}3 5 1\n1 5 1\n`,
  'cut.mtx': `${MTX}3 4 4\n1 1 1.5\n1 3`,
  'vast.mtx': `${MTX}3 4 1\n1 1 1e400\n`,
  'few.mtx': `${MTX}3 4 4\n1 1 1.5\n`,
  'many.mtx': `${MTX}3 4 1\n1 1 1.5\n2 2 1\n`,
  'range.mtx': `${MTX}3 4 1\n4 1 1.5\n`,
  'zero.mtx': `${MTX}3 4 1\n0 1 1.5\n`,
  'word.mtx': `${MTX}3 4 1\n1 1 one\n`,
  'banner.mtx': '3 4 1\n1 1 1\n',
  'complex.mtx': '%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 2\n',
  'empty.mtx': '',
  'vector.npz': bytes(npzChunks({ x: { values: Float32Array.of(1, 2, 3), shape: [3], dtype: 'f32' } })),
  'cut.npz': npz.slice(0, npz.length - 40),
  'text.npz': 'this is no archive',
  'monotone.npz': csr({ indptr: [0, 3, 2, 4] }),
  'first.npz': csr({ indptr: [1, 2, 2, 4] }),
  'last.npz': csr({ indptr: [0, 2, 2, 5] }),
  'rows.npz': csr({ indptr: [0, 2, 4] }),
  'column.npz': csr({ indices: [0, 4, 1, 3] }),
  'negative.npz': csr({ indices: [0, -1, 1, 3] }),
  'values.npz': csr({ data: [1, 2, 3] }),
  'graph.npz': npz,
  'two.safetensors': safetensors(
    '{"W":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},"b":{"dtype":"F32","shape":[4],"data_offsets":[48,64]}}',
    64,
  ),
  'cut.safetensors': safetensors('{"W":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]}}', 40),
  'nan.safetensors': ofW('F32', '3,4', notFinite(Number.NaN)),
  'infinite.safetensors': ofW('F32', '3,4', notFinite(Number.NEGATIVE_INFINITY)),
  'ints.safetensors': ofW('I32', '3,4', 48),
  'narrow.safetensors': ofW('F8_E4M3', '3,4', 12),
  'turned.safetensors': ofW('F32', '4,3', 48),
  'other.safetensors': ofW('F32', '3,4', 48, 'V'),
  'steps.safetensors': ofW('BOOL', '3,4', Uint8Array.of(1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0)),
  'many.safetensors': ofW('U8', '3,4', Uint8Array.of(1, 1, 2, 0, 0, 1, 1, 0, 0, 0, 0, 0)),
  'flat.safetensors': ofW('BOOL', '4,3', 12),
  'others/mine.txt': 'x',
  'none/masks.safetensors': safetensors('{}', 0),
  'stage/masks.safetensors': ofW('BOOL', '3,4', 12, 'V'),
  'text.safetensors': 'this is no file of tensors',
  'away.safetensors.index.json': '{"weight_map":{"W":"../two.safetensors"}}',
  'a.xyz': 'x',
  'text.npy': 'this is no array',
  'wide.mtx': `${MTX}3 4 2\n1 1 1.5 2 2 1\n`,
  'sizes.mtx': `${MTX}3 4\n1 1 1\n`,
  'both.mtx': '%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 2 1\n3 1 1\n',
  'uneven.txt': '0 1\n1 2 0.5\n',
  'names.tsv': 'from\tto\n',
  'odd.safetensors': ofW('F12', '3,4', 48),
  'halves.npz': bytes(
    npzChunks({
      indices: { values: Float32Array.of(0, 2, 1, 3), shape: [4], dtype: 'f32' },
      indptr: { values: Int32Array.of(0, 2, 2, 4), shape: [4], dtype: 'i32' },
      format: { text: 'csr' },
      shape: { values: Int32Array.of(3, 4), shape: [2], dtype: 'i32' },
      data: { values: Float32Array.of(1, 2, 3, 4), shape: [4], dtype: 'f32' },
    }),
  ),
}

/** What a case is about, and its command line. */
export const CASES: Readonly<Record<string, string>> = {
  // Usage
  'command misspelt': 'rum {mul.spt}',
  'command is a file': '{mul.spt}',
  'option before the command': '--verify run {mul.spt}',
  'option misspelt': 'run {mul.spt} --verfy',
  'option of another command': 'check {mul.spt} --stage 2',
  'option without its value': 'run {mul.spt} --bind',
  'option followed by an option': 'run {mul.spt} --size --json',
  'option with an empty value': 'run {mul.spt} --device=',
  'flag with a value': 'run {mul.spt} --json=yes',
  'option twice': 'run {mul.spt} --device cpu --device webgpu',
  'no file': 'run --json',
  'two files': 'run {mul.spt} {several.spt}',
  'bind without a path': 'run {mul.spt} --bind A',
  'bind without a name': 'run {mul.spt} --bind =a.mtx',
  'bind twice': 'run {mul.spt} --bind A=x.mtx --bind A=y.mtx',
  'size no number': 'run {mul.spt} --size d=many',
  'size empty': 'run {mul.spt} --size d=',
  'repeat no number': 'run {mul.spt} --repeat often',
  'repeat zero': 'run {mul.spt} --repeat 0',
  'seed negative': 'run {mul.spt} --seed -1',
  'device unknown': 'run {mul.spt} --device gpu',
  'target unknown': 'emit {mul.spt} --target metal',
  'target missing': 'emit {mul.spt}',
  'capability no number': 'emit {chip.spt} --target cuda --capability sm_90',
  'capability of another target': 'emit {chip.spt} --target wgsl --capability 9.0',
  'capability of another device': 'show {chip.spt} --schedule auto --capability 9.0',
  'capability missing': 'emit {chip.spt} --target cuda --schedule auto',
  'processors no number': 'emit {figures.spt} --target cuda --processors 0',
  'processors of the cpu': 'emit {figures.spt} --target js --processors 132',
  'processors missing':
    'emit {figures.spt} --target cuda --schedule auto --size d=4 --feature subgroup_size(32)',
  'feature without a name': 'emit {figures.spt} --target wgsl --feature subgroup_size(32',
  'feature of the cpu': 'show {figures.spt} --schedule auto --feature f16',
  'output over the program': 'emit {mul.spt} --target wgsl --out {mul.spt}',
  'output over an input': 'run {mul.spt} --bind A={a.mtx} --out C={a.mtx}',
  'two outputs in one file': 'format {a.mtx} --as csr --svg {x.out} --json {x.out}',
  'feature unknown where nothing asks': 'emit {mul.spt} --target wgsl --feature zz',
  'feature unknown': 'emit {figures.spt} --target wgsl --feature subgroup --size d=4',
  'features missing': 'emit {figures.spt} --target wgsl --schedule auto --size d=4',
  'size that decides nothing': 'emit {mul.spt} --target js --size foo(j)=3',
  'capability that decides nothing': 'emit {mul.spt} --target cuda --capability 9.0',
  'size that decides nothing of a schedule': 'show {figures.spt} --schedule gpu --size d=3',
  'schedule call of a file that is missing': 'run {missing.spt} --schedule gpu(',
  'whole file without an output': 'tune {mul.spt} --whole',
  'error code unknown': 'explain check/unknown-nam',
  'error code of another area': 'explain io/unknown-name',
  'statistic that decides nothing': 'explain {mul.spt} --device cpu --size longest(j)=3',
  'stage unknown': 'show {mul.spt} --stage 4',
  'pass unknown': 'show {mul.spt} --after loop-unroling',
  'pass of another stage': 'show {mul.spt} --after buffer-flattening --stage 2',
  'space at a stage': 'show {space.spt} --space some --stage 2',
  'survey of a stage': 'show {space.spt} --stage 2 --survey 10',
  'data of a stage': 'show {mul.spt} --bind A={a.mtx}',
  'survey no number': 'show {space.spt} --space some --survey all',
  'permutations at a stage': 'show {mul.spt} --pit --stage 2',
  'iteration of no permutations': 'show {mul.spt} --iteration sum',
  'tile of no permutations': 'show {mul.spt} --tile i=4',
  'attributes at a stage': 'show {mul.spt} --attributes --stage 2',
  'attributes of tiles': 'show {mul.spt} --attributes --tile i=4',
  'attributes and permutations': 'show {mul.spt} --attributes --pit',
  'tile no number': 'show {mul.spt} --pit --tile i=x',
  'tile empty': 'show {mul.spt} --pit --tile i=0',
  'tile along no axis': 'show {mul.spt} --pit --tile q=4',
  'space no call': 'show {space.spt} --space some(8',
  'space with an argument of another name': 'show {space.spt} --space some(moost=8)',
  'sketches with arguments': 'show {space.spt} --space sketches(8)',
  'schedule no call': 'run {mul.spt} --schedule gpu(8',
  'schedule with a fraction': 'run {mul.spt} --schedule gpu(0.5)',
  // Names
  'file missing': 'run {nothing.spt}',
  'file a folder': 'check {}',
  'file the current folder': 'check .',
  'import of a folder': 'check {folder.spt}',
  'file not a program': 'check {graph.npz}',
  'import missing': 'check {imports.spt}',
  'program empty': 'run {empty.spt}',
  'kernel unknown': 'run {several.spt} --kernel tow',
  'kernel not said': 'run {several.spt}',
  'schedule unknown': 'run {mul.spt} --schedule gpus',
  'schedule of too many arguments': 'run {mul.spt} --schedule gpu(1,2)',
  'schedule of too few arguments': 'run {mul.spt} --schedule blocks',
  'iteration unknown': 'show {mul.spt} --pit --iteration sun',
  'iteration of attributes unknown': 'show {mul.spt} --attributes --iteration sun',
  'kernel of permutations unknown': 'show {mul.spt} --pit --kernel mull',
  'step unknown': 'show {mul.spt} --schedule gpu --after 9',
  'step without schedule': 'show {mul.spt} --after 1',
  'space unknown': 'show {space.spt} --space same --size d=8',
  'space of a kernel without one': 'show {mul.spt} --space some',
  'space that asks for a size': 'show {space.spt} --space some',
  'space without points': 'show {space.spt} --space some --size d=1',
  'buffer unknown': 'run {mul.spt} --bind a={a.mtx}',
  'size unknown': 'run {mul.spt} --bind A={a.mtx} --size D=4',
  'output unknown': 'run {mul.spt} --out A={out.npy}',
  // Sizes
  'sizes missing': 'run {mul.spt}',
  'scalar missing': 'run {mul.spt} --bind A={a.mtx} --size d=2',
  'size negative': 'run {mul.spt} --bind A={a.mtx} --size d=-2 --size alpha=1',
  'size a fraction': 'run {mul.spt} --bind A={a.mtx} --size d=2.5 --size alpha=1',
  'size too large': 'run {mul.spt} --bind A={a.mtx} --size d=3000000000 --size alpha=1',
  'size against data': 'run {mul.spt} --bind A={a.mtx} --size m=4 --size d=2 --size alpha=1',
  'elements too many': 'run {mul.spt} --bind A={a.mtx} --size d=2000000000 --size alpha=1',
  // Data
  'data missing': 'run {mul.spt} --bind A={b.mtx}',
  'data a folder': 'run {mul.spt} --bind A={}',
  'data of no known kind': 'run {mul.spt} --bind A={a.xyz}',
  'mtx empty': 'run {mul.spt} --bind A={empty.mtx}',
  'mtx cut': 'run {mul.spt} --bind A={cut.mtx}',
  'mtx of too few entries': 'run {mul.spt} --bind A={few.mtx}',
  'mtx of too many entries': 'run {mul.spt} --bind A={many.mtx}',
  'mtx row out of range': 'run {mul.spt} --bind A={range.mtx}',
  'mtx row zero': 'run {mul.spt} --bind A={zero.mtx}',
  'mtx value a word': 'run {mul.spt} --bind A={word.mtx}',
  'mtx value beyond doubles': 'run {mul.spt} --bind A={vast.mtx}',
  'mtx without banner': 'run {mul.spt} --bind A={banner.mtx}',
  'mtx complex': 'run {mul.spt} --bind A={complex.mtx}',
  'mtx with two entries on a line': 'run {mul.spt} --bind A={wide.mtx}',
  'mtx without a number of entries': 'run {mul.spt} --bind A={sizes.mtx}',
  'mtx symmetric with both triangles': 'run {mul.spt} --bind A={both.mtx}',
  'edges of two and of three columns': 'run {mul.spt} --bind A={uneven.txt}',
  'edges without a line of numbers': 'run {mul.spt} --bind A={names.tsv}',
  'npy text': 'run {mul.spt} --bind B={text.npy}',
  'npz with indices that are floats': 'run {mul.spt} --bind A={halves.npz}',
  'safetensors of an unknown type': 'run {mul.spt} --bind A={odd.safetensors}',
  'npz cut': 'run {mul.spt} --bind A={cut.npz}',
  'npz text': 'run {mul.spt} --bind A={text.npz}',
  'npz without an address': 'run {mul.spt} --bind A={graph.npz}#',
  'address in an mtx': 'run {mul.spt} --bind A={a.mtx}#x',
  'npz member unknown': 'run {mul.spt} --bind A={graph.npz}#weights',
  'safetensors of several': 'run {mul.spt} --bind A={two.safetensors}',
  'safetensors tensor unknown': 'run {mul.spt} --bind A={two.safetensors}#w',
  'safetensors cut': 'run {mul.spt} --bind A={cut.safetensors}',
  'safetensors text': 'run {mul.spt} --bind A={text.safetensors}#W',
  'index that leads away': 'run {mul.spt} --bind A={away.safetensors.index.json}#W',
  'csr indptr falls': 'run {mul.spt} --bind A={monotone.npz}',
  'csr indptr starts late': 'run {mul.spt} --bind A={first.npz}',
  'csr indptr ends late': 'run {mul.spt} --bind A={last.npz}',
  'csr indptr of other rows': 'run {mul.spt} --bind A={rows.npz}',
  'csr index out of range': 'run {mul.spt} --bind A={column.npz}',
  'csr index negative': 'run {mul.spt} --bind A={negative.npz}',
  'csr values too few': 'run {mul.spt} --bind A={values.npz}',
  'rank wrong': 'run {mul.spt} --bind A={vector.npz}',
  'shapes differ': 'run {mul.spt} --bind A={a.mtx} --bind j={other.mtx} --size d=2 --size alpha=1',
  'offsets of another type': `${CONVOLUTION} --bind p={map.npz}#floats`,
  'offsets that start late': `${CONVOLUTION} --bind p={map.npz}#late`,
  'offsets that fall': `${CONVOLUTION} --bind p={map.npz}#falling`,
  'offsets that end late': `${CONVOLUTION} --bind p={map.npz}#long`,
  'offsets of other lists': `${CONVOLUTION} --bind p={map.npz}#offsets --size offsets=4`,
  'offsets of longer segments': `${CONVOLUTION} --bind p={map.npz}#offsets --size offsets=3 --size pairs=1`,
  'values without offsets': CONVOLUTION,
  // Outputs
  'output in no folder': 'run {mul.spt} --out C={nowhere/c.npy}',
  'output a folder': 'run {mul.spt} --out C={folder.npy}',
  'output of no known kind': 'run {mul.spt} --out C={c.txt}',
  'emit into no folder': 'emit {mul.spt} --target js --out {nowhere/c.js}',
  'emit into a file': 'emit {mul.spt} --target js --out {a.mtx}/',
  'output to standard output': 'format {a.mtx} --json -',
  'root of imports a file': 'check {mul.spt} --import-root {a.mtx}',
  'file without its ending': 'check {mul}',
  'URL of no file': 'check https://example.org/mul.spt',
  // Measuring
  'bench figures in no folder': 'bench spmm --json {nowhere/x.json}',
  'bench figures a folder': 'bench spmm --json {folder.npy}',
  'bench of a matrix that is not there': 'bench gemm --data {folder.npy} --matrices arxiv',
  'bench of no matrices': 'bench spmm --matrices ,',
  'bench of a size of layers for another suite': 'bench spmm --matrices 3072x768',
  'bench of layers without weights': 'bench tile-wise --sparsities 0.5,1',
  'bench of layers on no GPU': 'bench tile-wise --device cpu',
  'bench of what another suite has': 'bench spmm gemm --break-even',
  'bench of a folder that is a file': 'bench spmm --data {a.mtx}',
  'bench of no folder': 'bench spmm --data {data}',
  'bench schedule of no file in the package': 'bench spmm --schedule sparsetile/kernels/spnm.spt:spmm.gpu',
  'bench schedule unknown in the package': 'bench spmm --schedule sparsetile/kernels/gemm.spt:gemm.nosuch',
  'bench schedule of no form': 'bench spmm --schedule spmm.gpu',
  'bench schedule with an empty argument': 'bench spmm --schedule spmm.spt:spmm.gpu(4,,32)',
  'bench schedule of no file': 'bench spmm --schedule spnm.spt:spmm.gpu',
  'bench schedule of a file that is wrong': 'bench spmm --schedule {imports.spt}:spmm.gpu',
  'bench schedule of no kernel': 'bench spmm --schedule spmm.spt:spnm.gpu',
  'bench schedule unknown': 'bench spmm --schedule {mul.spt}:mul.gpus',
  'bench schedule of too many arguments': 'bench spmm --schedule spmm.spt:spmm.gpu(1,2,3)',
  'bench choice of too many arguments': 'bench spmm --schedule spmm.spt:spmm.auto(1)',
  'bench schedule of another suite': 'bench sddmm --schedule spmm.spt:spmm.gpu',
  'bench schedule of a suite whose name goes on':
    'bench dynamic --schedule dynamic-attention.spt:dynamic_attention.gpu',
  'bench schedule of no suite': 'bench spmm --schedule {mul.spt}:mul.gpu',
  // Records
  'records and nothing to do': 'records',
  'records action misspelt': 'records lst',
  'records option of another action': 'records list --format csv',
  'records action with too much': 'records list all',
  'records of no id': 'records show --json',
  'records in no file': 'records list --db {none.db}',
  'records in a text': 'records list --db {a.mtx}',
  'records in a folder': 'records prune --keep-best 1 --db {folder.npy}',
  'records in no folder': 'records list --db {nowhere/r.db}',
  'records as figures of themselves': 'records export --format csv --db {a.mtx} --out {a.mtx}',
  'page in no folder': 'tune {mul.spt} --bind A={a.mtx} --size d=3 --html {nowhere/r.html}',
  'page in a folder of its name': 'tune {mul.spt} --bind A={a.mtx} --size d=3 --html {folder.npy}',
  'page of several sizes': 'tune {mul.spt} --bind A={a.mtx} --size d=3 --size d=4 --html {r.html}',
  'page over an input': 'tune {mul.spt} --bind A={a.mtx} --size d=3 --html {a.mtx}',
  'page over the schedule': 'tune {mul.spt} --size d=3 --html {x.out} --out {x.out}',
  'tuned schedule in no folder': 'tune {mul.spt} --bind A={a.mtx} --size d=3 --out {nowhere/fast.spt}',
  // Pruning
  'prune nothing': 'prune',
  'prune with a kernel, and no prediction':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --kernel spmm',
  'prune with the prediction of a kernel of one dense matrix':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --predict kernels/gemm.spt',
  'prune in no pattern': 'prune {two.safetensors} --sparsity 0.5',
  'prune in a pattern that is misspelt':
    'prune {two.safetensors} --pattern tww --granularity 2 --sparsity 0.5',
  'prune without a granularity': 'prune {two.safetensors} --pattern tw --sparsity 0.5',
  'prune with another pattern its option':
    'prune {two.safetensors} --pattern tw --granularity 2 --delta 0.1 --sparsity 0.5',
  'prune elements with an option': 'prune {two.safetensors} --pattern ew --n 2 --sparsity 0.5',
  'prune with a granularity of a word':
    'prune {two.safetensors} --pattern tw --granularity all --sparsity 0.5',
  'prune with a granularity of 0': 'prune {two.safetensors} --pattern tw --granularity 0 --sparsity 0.5',
  'prune with a granularity of 65537':
    'prune {two.safetensors} --pattern tw --granularity 65537 --sparsity 0.5',
  'prune with a granularity of a half':
    'prune {two.safetensors} --pattern tw --granularity 2.5 --sparsity 0.5',
  'prune with no sparsity': 'prune {two.safetensors} --pattern ew',
  'prune everything': 'prune {two.safetensors} --pattern ew --sparsity 1',
  'prune less than nothing': 'prune {two.safetensors} --pattern ew --sparsity -0.5',
  'prune percent': 'prune {two.safetensors} --pattern ew --sparsity 75%',
  'prune another sparsity than of the pattern':
    'prune {two.safetensors} --pattern nm --n 2 --m 4 --sparsity 0.75',
  'prune with a delta beyond':
    'prune {two.safetensors} --pattern tew --granularity 2 --delta 0.5 --sparsity 0.6',
  'prune with a limit of a word': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --limit W=half',
  'prune with a limit above 1': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --limit W=2',
  'prune with a limit of nothing': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --limit W',
  'prune with two limits of a layer':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --limit W=0.5 --limit W=0.6',
  'prune with a layer that is not there': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --exclude w',
  'prune with a limit of a tensor that is no layer':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --limit b=0.5',
  'prune with all layers excluded': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --exclude *',
  'prune by a norm that is none':
    'prune {two.safetensors} --pattern tw --granularity 2 --sparsity 0.5 --normalise lenght',
  'prune a model of no layers': 'prune {ints.safetensors} --pattern ew --sparsity 0.5',
  'prune a model of narrow floats': 'prune {narrow.safetensors} --pattern ew --sparsity 0.5',
  'prune NaN': 'prune {nan.safetensors} --pattern tw --granularity 2 --sparsity 0.5',
  'prune infinity': 'prune {infinite.safetensors} --pattern nm --n 2 --m 4',
  'prune a file that is cut': 'prune {cut.safetensors} --pattern ew --sparsity 0.5',
  'prune a matrix': 'prune {a.mtx} --pattern ew --sparsity 0.5',
  'prune a sparse matrix': 'prune {graph.npz} --pattern ew --sparsity 0.5',
  'prune a file that is not there': 'prune {tow.safetensors} --pattern ew --sparsity 0.5',
  'prune by gradients of other layers':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --gradients {other.safetensors}',
  'prune by gradients of another shape':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --gradients {turned.safetensors}',
  'prune by gradients of integers':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --gradients {ints.safetensors}',
  'prune by gradients that are NaN':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --gradients {nan.safetensors}',
  'prune after nothing': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --after {stages}',
  'prune after another model': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --after {stage}',
  'prune after masks that lack a layer': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --after {none}',
  'prune by masks of another model': 'prune {two.safetensors} --pattern ew --masks {other.safetensors}',
  'prune by masks of floats': 'prune {two.safetensors} --pattern ew --masks {turned.safetensors}',
  'prune by masks of another shape': 'prune {two.safetensors} --pattern ew --masks {flat.safetensors}',
  'prune by masks with a 2': 'prune {two.safetensors} --pattern ew --masks {many.safetensors}',
  'prune by masks that are not tile-wise':
    'prune {two.safetensors} --pattern tw --granularity 2 --masks {steps.safetensors}',
  'prune NaN by masks': 'prune {nan.safetensors} --pattern ew --masks {steps.safetensors}',
  'prune by masks and a sparsity':
    'prune {two.safetensors} --pattern tw --granularity 2 --masks {steps.safetensors} --sparsity 0.5',
  'prune by masks in blocks':
    'prune {two.safetensors} --pattern bw --rows 2 --cols 2 --masks {steps.safetensors}',
  'prune into the folder of the model': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --out {.}',
  'prune into the model': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --out {two.safetensors}',
  'prune into the stage before':
    'prune {two.safetensors} --pattern ew --sparsity 0.5 --after {stage} --out {stage}',
  'prune into a file': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --out {a.mtx}',
  'prune into a folder of others': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --out {others}',
  'prune into no folder': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --out {nowhere/out}',
  'prune into standard output': 'prune {two.safetensors} --pattern ew --sparsity 0.5 --out /dev/stdout',
  // Schedules and devices
  'step not legal': 'run {threads.spt} --kernel mul --schedule illegal --bind A={a.mtx}',
  'step too late': 'run {threads.spt} --kernel mul --schedule late',
  'factor zero': 'show {mul.spt} --schedule blocks(0) --stage 2',
  'factor negative': 'show {mul.spt} --schedule blocks(-3) --stage 2',
  'wgsl without f64': 'emit {wide.spt} --target wgsl',
  'webgpu without f64': 'run {wide.spt} --device webgpu --size n=4',
}
