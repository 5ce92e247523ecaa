# source this file: puts the SDK it lies in on the paths of the shell (bash, zsh, dash with DOPPEL_HOME set).
if [ -n "${BASH_SOURCE:-}" ]; then
    _doppel_file=${BASH_SOURCE[0]}
elif [ -n "${ZSH_VERSION:-}" ]; then
    eval '_doppel_file=${(%):-%x}'
else
    _doppel_file=${DOPPEL_HOME:-}/set_env.sh
fi
_doppel_home=$(cd "$(dirname "$(readlink -f "$_doppel_file")")" 2>/dev/null && pwd -P)
if [ ! -e "$_doppel_home/lib64/libascendcl.so" ]; then
    echo "set_env.sh: no SDK at '$_doppel_home'; in this shell set DOPPEL_HOME to the SDK's folder first" >&2
    unset _doppel_file _doppel_home
    return 1
fi

# _doppel_prepend VARIABLE FOLDER: once, and without an empty element.
_doppel_prepend() {
    eval "_doppel_old=\${$1:-}"
    case ":$_doppel_old:" in
    *":$2:"*) ;;
    *) export "$1=$2${_doppel_old:+:$_doppel_old}" ;;
    esac
    unset _doppel_old
}
export ASCEND_TOOLKIT_HOME="$_doppel_home"
export ASCEND_HOME_PATH="$_doppel_home"
export ASCEND_OPP_PATH="$_doppel_home/opp"
_doppel_prepend PATH "$_doppel_home/bin"
_doppel_prepend LD_LIBRARY_PATH "$_doppel_home/lib64"
_doppel_prepend CMAKE_PREFIX_PATH "$_doppel_home"
_doppel_prepend PKG_CONFIG_PATH "$_doppel_home/lib64/pkgconfig"
if [ -d "$_doppel_home/python/site-packages" ]; then
    _doppel_prepend PYTHONPATH "$_doppel_home/python/site-packages"
fi
unset -f _doppel_prepend
unset _doppel_file _doppel_home
