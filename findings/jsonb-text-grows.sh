#!/usr/bin/env bash
# PostgreSQL: how long the text of a jsonb value is beside what was stored.
#
# A good guess: a queue that keeps its payloads in jsonb gives back about as many bytes as it took,
# so that a limit on a payload's size, in bytes, holds after a move to another queue. It does not, in
# two ways (PostgreSQL 18.7, as @electric-sql/pglite 0.5.17 has it):
#
#   - data::text has a space after each comma and colon: an array of 50,000 digits has 100,001 bytes
#     when it is sent, and 150,000 when it is read. row_to_json writes the same text.
#   - Numbers are numeric, and are written without an exponent: 1e5000, six bytes, is read as 5,001;
#     an array of ten such numbers, 71 bytes, as 50,030. JavaScript takes 1e5000 for Infinity.
#
# Nor does pg_column_size tell: the array of digits has 600,008 bytes before it is compressed, the
# array of exponents, whose text is a third of that array's, 166.
#
# Seen: the lines that `wanted` has below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

npm init -y >/dev/null
npm install --silent --no-fund --no-audit --ignore-scripts --save-exact @electric-sql/pglite@0.5.17 >/dev/null

cat > look.mjs <<'JS'
import { PGlite } from '@electric-sql/pglite'

const db = new PGlite()
const version = await db.query('SHOW server_version')
console.log('version', version.rows[0].server_version)
for (const [name, text] of [
  ['array of digits', '[' + Array(50000).fill(1).join(',') + ']'],
  ['object', '{"a":1,"b":[true,null]}'],
  ['exponent', '1e5000'],
  ['ten exponents', '[' + Array(10).fill('1e5000').join(',') + ']'],
]) {
  const found = await db.query(
    `SELECT octet_length(data::text) AS read, octet_length(row_to_json(q)::text) AS row,
       pg_column_size(data) AS stored FROM (SELECT $1::jsonb AS data) q`, [text])
  const { read, row, stored } = found.rows[0]
  console.log(`${name}: sent ${text.length}, read ${read}, in a row ${row}, stored ${stored}`)
}
console.log('JSON.parse', JSON.parse('1e5000'))
JS
node look.mjs > seen
cat > wanted <<'TEXT'
version 18.7
array of digits: sent 100001, read 150000, in a row 150009, stored 600008
object: sent 23, read 27, in a row 36, stored 48
exponent: sent 6, read 5001, in a row 5010, stored 22
ten exponents: sent 71, read 50030, in a row 50039, stored 166
JSON.parse Infinity
TEXT
diff wanted seen
cat seen
