#!/bin/sh
# SPDX-License-Identifier: MIT
# mpirun.sh FOLDER MPIRUN ARGUMENT...: runs mpirun in a folder, for at most a minute. After all ranks
# have ended, mpirun of Open MPI 4.1 sometimes hangs in PMIx_server_finalize. It is then killed, and
# the status is 137.
cd "$1" || exit
shift
OMPI_MCA_rmaps_base_oversubscribe=1 "$@" </dev/null &
mpirun=$!

# Prints the ranks that have not ended.
living() {
  for rank in $(cat /proc/$mpirun/task/*/children 2>/dev/null); do
    [ "$(cut -d ' ' -f 3 "/proc/$rank/stat" 2>/dev/null || echo Z)" = Z ] || echo "$rank"
  done
}

started=no idle=0 waited=0
while kill -0 $mpirun 2>/dev/null; do
  sleep 0.2
  waited=$((waited + 1)) idle=$((idle + 1))
  if [ -n "$(living)" ]; then
    started=yes idle=0
  fi
  [ $waited -ne 300 ] || kill -TERM $mpirun
  if [ $waited -ge 350 ] || { [ $started = yes ] && [ $idle -ge 25 ]; }; then
    kill -KILL $mpirun
    break
  fi
done
wait $mpirun
