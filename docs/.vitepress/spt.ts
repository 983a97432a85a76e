/** A TextMate grammar of `.spt` for syntax highlighting: keywords, steps, types, numbers, strings, comments. */
const words = (list: string): string => `\\b(?:${list.trim().split(/\s+/).join('|')})\\b`

const DECLARATIONS = words(
  `import from kernel format schedule space monoid memory instr choose extends when otherwise fastest`,
)
const MEMBERS = words(`
  axis list buffer define iterate let if else where map inverse sort mask part partition bucket by into as over padded packed with
  full unordered nonunique compact fill accumulate identity combine element address precision require examples
  each of merge parts nest use live in out inout local place capacity for either only to or and not`)
const STEPS = words(`
  split tile reorder fuse bind unroll vectorize parallel cache_read cache_write compute_at compute_inline rfactor fission peel reverse
  serpentine cluster attach drop atomic pipeline join as_written tensorize`)
const TYPES = words(`f64 f32 f16 bf16 i64 i32 u32 i16 u16 i8 u8 bool size
  dense_fixed dense_variable run sparse_fixed sparse_variable singleton bitmap`)

export const spt = {
  name: 'spt',
  scopeName: 'source.spt',
  fileTypes: ['spt'],
  patterns: [
    { name: 'comment.line.double-slash.spt', match: '//.*$' },
    { name: 'comment.block.spt', begin: '/\\*', end: '\\*/' },
    { name: 'string.quoted.double.spt', begin: '"', end: '"' },
    { name: 'constant.numeric.spt', match: '\\b\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?\\b' },
    { name: 'constant.language.spt', match: words('true false inf nan') },
    { name: 'keyword.control.spt', match: DECLARATIONS },
    { name: 'support.type.spt', match: TYPES },
    { name: 'keyword.other.spt', match: MEMBERS },
    { name: 'support.function.spt', match: STEPS },
    { name: 'entity.name.function.spt', match: '\\b[A-Za-z_]\\w*(?=\\s*\\()' },
    { name: 'keyword.operator.spt', match: '->|\\+=|\\w*=|[-+*/%<>=!&|^]+' },
  ],
}
