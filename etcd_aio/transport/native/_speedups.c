/* The usual path of unary calls: starts the calls that wait, many in one buffer, and reads the frames of their answers.

   Each function does exactly what `http2` does in the usual case, and stops before the first call or frame that is not
   usual in any way. That one is Python's, with all its checks, limits and errors. So nothing is judged here, no state is
   kept between two calls of a function, and only MemoryError and what `Future.set_result` and `on_data` raise leaves it.

   The slots of the calls and header blocks are read and written through their descriptors. Only objects of exactly
   `UnaryCall`, `RequestHeaders` and `HeaderBlock` are touched: an object of a subclass is not usual. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <string.h>

enum {
    HEADERS, OWN_HEADERS, STREAM_ID, UNSENT, END_AFTER, HAS_BEGUN, SEND_WINDOW, RECEIVE_WINDOW, TO_RETURN,
    IS_SENT_WHOLE, IS_OPEN, HAS_HEADERS, DEFRAMER, LIMIT, MESSAGE, FUTURE, CALL_SLOTS
};
static const char *const call_names[] = {
    "headers", "own_headers", "stream_id", "unsent", "end_after", "has_begun", "send_window", "receive_window",
    "to_return", "is_sent_whole", "is_open", "has_headers", "_deframer", "_limit", "_message", "future"};
enum { BLOCK, GENERATION, REQUEST_SLOTS };
static const char *const request_names[] = {"block", "generation"};
enum { ACCEPTED_AS, BLOCK_SLOTS };
static const char *const block_names[] = {"accepted_as"};

enum { CALL_CLASS, REQUEST_CLASS, BLOCK_CLASS, CLASSES };
static const char *const *const names_of[CLASSES] = {call_names, request_names, block_names};
static const int counts[CLASSES] = {CALL_SLOTS, REQUEST_SLOTS, BLOCK_SLOTS};

typedef struct {
    PyTypeObject *type;
    PyObject *slots[CALL_SLOTS];
    int count;
} Class;

typedef struct {
    Class classes[CLASSES];
    descrgetfunc get; /* of every slot's descriptor */
    descrsetfunc set;
    PyObject *as_headers, *as_trailers;          /* the roles in which header blocks are accepted */
    PyObject *stream_window;                     /* with which a stream begins */
    Py_ssize_t return_after;                     /* bytes of a stream after which Python returns them to its window */
    PyObject *done, *set_result, *on_data, *empty;
} State;

typedef const unsigned char *Bytes;

#define FRAME_HEADER 9
#define MESSAGE_HEADER 5
#define LARGEST_FRAME 16384 /* as in `frames.DEFAULT_MAX_FRAME_SIZE` */
enum { DATA = 0, HEADERS_FRAME = 1 };
enum { END_STREAM = 1, END_HEADERS = 4 };

/* Returns a new reference to the content of a slot; NULL without an exception if it is empty. */
static inline PyObject *
content_of(const State *state, int class, int slot, PyObject *object)
{
    PyObject *found = state->get(state->classes[class].slots[slot], object, (PyObject *)Py_TYPE(object));
    if (found == NULL)
        PyErr_Clear();
    return found;
}

/* Whether a slot has exactly this object. */
static inline int
has(const State *state, int class, int slot, PyObject *object, const PyObject *wanted)
{
    PyObject *found = content_of(state, class, slot, object);
    Py_XDECREF(found);
    return found == wanted;
}

/* Returns the number in a slot; -1 without an exception if it is none, or has no room in a `Py_ssize_t`. */
static inline Py_ssize_t
number_of(const State *state, int class, int slot, PyObject *object)
{
    PyObject *found = content_of(state, class, slot, object);
    if (found == NULL)
        return -1;
    Py_ssize_t number = PyLong_AsSsize_t(found);
    if (number == -1)
        PyErr_Clear();
    Py_DECREF(found);
    return number;
}

/* Sets a slot to a new reference, which it takes. Returns whether it failed. */
static inline int
fill(const State *state, int slot, PyObject *call, PyObject *content)
{
    int failed = content == NULL || state->set(state->classes[CALL_CLASS].slots[slot], call, content) < 0;
    Py_XDECREF(content);
    return failed;
}

static inline int
is_done(const State *state, PyObject *future)
{
    PyObject *done = PyObject_CallMethodObjArgs(future, state->done, NULL);
    if (done == NULL)
        return -1;
    int is_true = PyObject_IsTrue(done);
    Py_DECREF(done);
    return is_true;
}

/* --- Reading answers ---

   The functions for the frames of an answer return 1 if the frame was read, 0 if it is not usual, and -1 with an
   exception. */

/* Response headers. The block was accepted as such before. */
static int
read_headers(const State *state, PyObject *call)
{
    if (!has(state, CALL_CLASS, HAS_BEGUN, call, Py_False))
        return 0;
    return fill(state, HAS_BEGUN, call, Py_NewRef(Py_True)) || fill(state, HAS_HEADERS, call, Py_NewRef(Py_True)) ? -1
                                                                                                                  : 1;
}

/* Deducts bytes of a call from its window. Returns 0 if that is Python's: they exceed one, or are to be returned. */
static int
deduct(const State *state, PyObject *call, Py_ssize_t length)
{
    Py_ssize_t window = number_of(state, CALL_CLASS, RECEIVE_WINDOW, call);
    Py_ssize_t unreturned = number_of(state, CALL_CLASS, TO_RETURN, call);
    if (length > window || unreturned < 0 || unreturned >= state->return_after - length)
        return 0;
    int failed = fill(state, RECEIVE_WINDOW, call, PyLong_FromSsize_t(window - length)) ||
                 fill(state, TO_RETURN, call, PyLong_FromSsize_t(unreturned + length));
    return failed ? -1 : 1;
}

/* A piece of a message whose beginning came before: the call gets it as from Python. */
static int
read_piece(const State *state, PyObject *call, Bytes content, Py_ssize_t length)
{
    PyObject *deframer = content_of(state, CALL_CLASS, DEFRAMER, call);
    Py_XDECREF(deframer);
    if (deframer == NULL || deframer == Py_None || !has(state, CALL_CLASS, HAS_BEGUN, call, Py_True))
        return 0;
    PyObject *piece = PyBytes_FromStringAndSize((const char *)content, length), *none = NULL;
    if (piece == NULL)
        return -1;
    int counted = deduct(state, call, length);
    if (counted > 0)
        none = PyObject_CallMethodObjArgs(call, state->on_data, piece, NULL);
    Py_DECREF(piece);
    Py_XDECREF(none);
    return counted > 0 && none == NULL ? -1 : counted;
}

/* A whole message, within every window and limit, and nothing else; or a piece of one. */
static int
read_data(const State *state, PyObject *call, Bytes content, Py_ssize_t length, Py_ssize_t room)
{
    if (length == 0 || length > room)
        return 0;
    Py_ssize_t size = length - MESSAGE_HEADER;
    if (!has(state, CALL_CLASS, DEFRAMER, call, Py_None))
        return read_piece(state, call, content, length);
    if (size < 0 || content[0] != 0 ||
        ((size_t)content[1] << 24 | (size_t)content[2] << 16 | (size_t)content[3] << 8 | content[4]) != (size_t)size ||
        !has(state, CALL_CLASS, HAS_HEADERS, call, Py_True) || !has(state, CALL_CLASS, HAS_BEGUN, call, Py_True) ||
        !has(state, CALL_CLASS, MESSAGE, call, Py_None) || size > number_of(state, CALL_CLASS, LIMIT, call))
        return 0;
    int counted = deduct(state, call, length);
    if (counted > 0 &&
        fill(state, MESSAGE, call, PyBytes_FromStringAndSize((const char *)content + MESSAGE_HEADER, size)))
        return -1;
    return counted;
}

/* Trailers: the answer is complete. The block was accepted as such before. */
static int
read_trailers(const State *state, PyObject *call, PyObject *streams, PyObject *id)
{
    PyObject *future = content_of(state, CALL_CLASS, FUTURE, call);
    int done = future == NULL ? 1 : is_done(state, future); /* first: it may run code that changes the rest */
    if (done || PyDict_GetItemWithError(streams, id) != call || !has(state, CALL_CLASS, HAS_BEGUN, call, Py_True) || !has(state, CALL_CLASS, HAS_HEADERS, call, Py_True) ||
        !has(state, CALL_CLASS, IS_SENT_WHOLE, call, Py_True)) {
        Py_XDECREF(future);
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *message = content_of(state, CALL_CLASS, MESSAGE, call);
    int read = 0;
    if (message != NULL && PyBytes_CheckExact(message)) {
        PyObject *none = NULL;
        if (!fill(state, IS_OPEN, call, Py_NewRef(Py_False)) && PyDict_DelItem(streams, id) == 0)
            none = PyObject_CallMethodObjArgs(future, state->set_result, message, NULL);
        read = none == NULL ? -1 : 1;
        Py_XDECREF(none);
    }
    Py_XDECREF(message);
    Py_XDECREF(future);
    return read;
}

/* Whether a header block was accepted before in this role; -1 with an exception. */
static int
is_known(const State *state, PyObject *known, Bytes content, Py_ssize_t length, const PyObject *role)
{
    PyObject *block = PyBytes_FromStringAndSize((const char *)content, length);
    if (block == NULL)
        return -1;
    PyObject *headers = PyDict_GetItemWithError(known, block);
    Py_DECREF(block);
    if (headers == NULL)
        return PyErr_Occurred() ? -1 : 0;
    return Py_IS_TYPE(headers, state->classes[BLOCK_CLASS].type) &&
           has(state, BLOCK_CLASS, ACCEPTED_AS, headers, role);
}

/* advance(data, at, streams, known, room) -> (at, received, useful)

   Reads frames from `at` on, until one is not usual or not complete. `known` has the header blocks that were decoded
   before, and `room` is how many bytes of DATA may come. Returns the position of the first frame that it did not read,
   how many bytes of DATA it read, and how many frames. */
static PyObject *
advance(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    const State *state = PyModule_GetState(module);
    if (count != 5 || !PyBytes_Check(arguments[0]) || !PyDict_Check(arguments[2]) || !PyDict_Check(arguments[3]) ||
        state->get == NULL) {
        PyErr_SetString(PyExc_TypeError, "advance(data: bytes, at, streams: dict, known: dict, room)");
        return NULL;
    }
    Py_ssize_t at = PyLong_AsSsize_t(arguments[1]), room = PyLong_AsSsize_t(arguments[4]);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t size = PyBytes_Size(arguments[0]), received = 0, useful = 0;
    if (at < 0) {
        PyErr_SetString(PyExc_ValueError, "a negative position");
        return NULL;
    }
    Bytes data = (Bytes)PyBytes_AsString(arguments[0]);
    PyObject *streams = arguments[2], *known = arguments[3];
    while (size - at >= FRAME_HEADER) {
        Bytes frame = data + at, content = frame + FRAME_HEADER;
        Py_ssize_t length = (Py_ssize_t)frame[0] << 16 | (Py_ssize_t)frame[1] << 8 | frame[2];
        int kind = frame[3], flags = frame[4];
        if (length > LARGEST_FRAME || length > size - at - FRAME_HEADER)
            break;
        if (kind == DATA ? flags != 0 : kind != HEADERS_FRAME || (flags | END_STREAM) != (END_HEADERS | END_STREAM))
            break;
        PyObject *id = PyLong_FromLong((long)(frame[5] & 0x7f) << 24 | (long)frame[6] << 16 | (long)frame[7] << 8 |
                                       (long)frame[8]);
        if (id == NULL)
            return NULL;
        PyObject *call = PyDict_GetItemWithError(streams, id);
        if (call == NULL || !Py_IS_TYPE(call, state->classes[CALL_CLASS].type)) {
            Py_DECREF(id);
            if (PyErr_Occurred())
                return NULL;
            break;
        }
        Py_INCREF(call); /* `read_trailers` removes it from `streams` */
        int read;
        if (kind == DATA)
            read = read_data(state, call, content, length, room - received);
        else {
            int ends = flags & END_STREAM;
            read = is_known(state, known, content, length, ends ? state->as_trailers : state->as_headers);
            if (read > 0)
                read = ends ? read_trailers(state, call, streams, id) : read_headers(state, call);
        }
        Py_DECREF(id);
        Py_DECREF(call);
        if (read < 0)
            return NULL;
        if (read == 0)
            break;
        if (kind == DATA)
            received += length;
        useful++;
        at += FRAME_HEADER + length;
    }
    return Py_BuildValue("nnn", at, received, useful);
}

/* --- Starting calls ---

   In three steps, so that nothing has changed if there is no memory: look at the calls, make all objects and the room,
   and only then change the calls and write. */

#define MOST_STARTED 64 /* at once; the caller asks again */

/* A usual call, and what starting it needs. All are references of its own. */
typedef struct {
    PyObject *call, *block, *own_block, *unsent, *id, *window;
} Start;

static void
drop(Start *starts, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XDECREF(starts[i].call);
        Py_XDECREF(starts[i].block);
        Py_XDECREF(starts[i].own_block);
        Py_XDECREF(starts[i].unsent);
        Py_XDECREF(starts[i].id);
        Py_XDECREF(starts[i].window);
    }
}

static unsigned char *
write_frame_header(unsigned char *to, Py_ssize_t length, int kind, int flags, long long id)
{
    to[0] = (unsigned char)(length >> 16);
    to[1] = (unsigned char)(length >> 8);
    to[2] = (unsigned char)length;
    to[3] = (unsigned char)kind;
    to[4] = (unsigned char)flags;
    to[5] = (unsigned char)(id >> 24);
    to[6] = (unsigned char)(id >> 16);
    to[7] = (unsigned char)(id >> 8);
    to[8] = (unsigned char)id;
    return to + FRAME_HEADER;
}

static unsigned char *
write_bytes(unsigned char *to, PyObject *bytes)
{
    Py_ssize_t size = PyBytes_Size(bytes);
    memcpy(to, PyBytes_AsString(bytes), size);
    return to + size;
}

/* Returns the encoded block of request headers; NULL without an exception if it is not encoded for this table. No
   headers have an empty block. */
static PyObject *
block_of(const State *state, PyObject *headers, Py_ssize_t generation)
{
    if (headers == Py_None)
        return Py_NewRef(state->empty);
    if (headers == NULL || !Py_IS_TYPE(headers, state->classes[REQUEST_CLASS].type) ||
        number_of(state, REQUEST_CLASS, GENERATION, headers) != generation)
        return NULL;
    PyObject *block = content_of(state, REQUEST_CLASS, BLOCK, headers);
    if (block != NULL && !PyBytes_CheckExact(block))
        Py_CLEAR(block);
    return block;
}

/* The limits for requests that are to be started. */
typedef struct {
    Py_ssize_t generation, stream_window, send_window, largest_frame;
} Limits;

/* Looks at a call, which `found` has. Returns the size of its message; 0 if it is not usual; -1 with an exception. */
static Py_ssize_t
look_at(const State *state, Start *found, const Limits *limits)
{
    PyObject *call = found->call;
    if (!Py_IS_TYPE(call, state->classes[CALL_CLASS].type))
        return 0;
    PyObject *future = content_of(state, CALL_CLASS, FUTURE, call);
    int done = future == NULL ? 1 : is_done(state, future); /* first: it may run code that changes the rest */
    Py_XDECREF(future);
    if (done || !has(state, CALL_CLASS, END_AFTER, call, Py_True))
        return done < 0 ? -1 : 0;
    PyObject *headers = content_of(state, CALL_CLASS, HEADERS, call);
    PyObject *own_headers = content_of(state, CALL_CLASS, OWN_HEADERS, call);
    found->unsent = content_of(state, CALL_CLASS, UNSENT, call);
    found->block = headers == Py_None ? NULL : block_of(state, headers, limits->generation);
    found->own_block = block_of(state, own_headers, limits->generation);
    Py_XDECREF(headers);
    Py_XDECREF(own_headers);
    if (found->block == NULL || found->own_block == NULL || found->unsent == NULL ||
        !PyBytes_CheckExact(found->unsent))
        return 0;
    Py_ssize_t size = PyBytes_Size(found->unsent);
    Py_ssize_t block_size = PyBytes_Size(found->block) + PyBytes_Size(found->own_block);
    if (size > limits->send_window || size > limits->stream_window || size > limits->largest_frame ||
        block_size > limits->largest_frame)
        return 0;
    return size;
}

/* Changes the calls, which needs no memory, and writes their frames. */
static void
carry_out(const State *state, const Start *starts, Py_ssize_t count, long long id, unsigned char *to)
{
    for (const Start *start = starts; start < starts + count; start++, id += 2) {
        Py_ssize_t block_size = PyBytes_Size(start->block) + PyBytes_Size(start->own_block);
        to = write_frame_header(to, block_size, HEADERS_FRAME, END_HEADERS, id);
        to = write_bytes(write_bytes(to, start->block), start->own_block);
        to = write_frame_header(to, PyBytes_Size(start->unsent), DATA, END_STREAM, id);
        to = write_bytes(to, start->unsent);
        fill(state, STREAM_ID, start->call, Py_NewRef(start->id));
        fill(state, SEND_WINDOW, start->call, Py_NewRef(start->window));
        fill(state, RECEIVE_WINDOW, start->call, Py_NewRef(state->stream_window));
        fill(state, UNSENT, start->call, Py_NewRef(state->empty));
        fill(state, IS_SENT_WHOLE, start->call, Py_NewRef(Py_True));
    }
}

/* Makes the answer of `start`, with room for the frames, and enters the calls into `streams`. */
static PyObject *
prepare(Start *starts, Py_ssize_t count, long long id, PyObject *streams, const Limits *limits, unsigned char **room)
{
    Py_ssize_t size = 0, sent = 0, entered = 0;
    for (Start *start = starts; start < starts + count; start++) {
        Py_ssize_t unsent = PyBytes_Size(start->unsent);
        size += 2 * FRAME_HEADER + PyBytes_Size(start->block) + PyBytes_Size(start->own_block) + unsent;
        sent += unsent;
        start->id = PyLong_FromLongLong(id + 2 * (start - starts));
        start->window = PyLong_FromSsize_t(limits->stream_window - unsent);
        if (start->id == NULL || start->window == NULL)
            return NULL;
    }
    PyObject *data = PyBytes_FromStringAndSize(NULL, size);
    PyObject *answer = data == NULL ? NULL : Py_BuildValue("Nnn", data, count, sent);
    while (answer != NULL && entered < count) {
        if (PyDict_SetItem(streams, starts[entered].id, starts[entered].call) < 0)
            Py_CLEAR(answer);
        else
            entered++;
    }
    if (answer == NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        while (entered > 0 && PyDict_DelItem(streams, starts[--entered].id) == 0)
            ;
        PyErr_Restore(type, value, traceback);
    } else
        *room = (unsigned char *)PyBytes_AsString(data);
    return answer;
}

/* start(queue, streams, most, next_id, generation, stream_window, send_window, largest_frame) -> (data, started, sent)

   Starts at most `most` calls from the head of the queue, until one is not usual. Returns the bytes to write, how many
   calls they start, and the bytes of their messages. The caller removes the calls from the queue. */
static PyObject *
start(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    const State *state = PyModule_GetState(module);
    if (count != 8 || !PyDict_Check(arguments[1]) || state->get == NULL) {
        PyErr_SetString(
            PyExc_TypeError,
            "start(queue, streams: dict, most, next_id, generation, stream_window, send_window, largest_frame)");
        return NULL;
    }
    Py_ssize_t most = PyNumber_AsSsize_t(arguments[2], NULL), waiting = 0, usual = 0, size = 1;
    long long id = PyLong_AsLongLong(arguments[3]);
    Limits limits = {PyLong_AsSsize_t(arguments[4]), PyLong_AsSsize_t(arguments[5]), PyLong_AsSsize_t(arguments[6]),
                     PyLong_AsSsize_t(arguments[7])};
    PyObject *queue = PyErr_Occurred() ? NULL : PyObject_GetIter(arguments[0]), *answer = NULL;
    if (queue == NULL)
        return NULL;
    if (most > MOST_STARTED)
        most = MOST_STARTED;
    Start starts[MOST_STARTED] = {{NULL, NULL, NULL, NULL, NULL, NULL}};
    while (waiting < most && (starts[waiting].call = PyIter_Next(queue)) != NULL)
        waiting++;
    Py_DECREF(queue);
    while (size > 0 && usual < waiting && !PyErr_Occurred()) {
        size = look_at(state, &starts[usual], &limits);
        if (size > 0) {
            limits.send_window -= size;
            usual++;
        }
    }
    unsigned char *room = NULL;
    if (!PyErr_Occurred())
        answer = prepare(starts, usual, id, arguments[1], &limits, &room);
    if (answer != NULL)
        carry_out(state, starts, usual, id, room);
    drop(starts, waiting);
    return answer;
}

/* --- The module --- */

/* Finds the descriptors of a class's slots. Returns -1 with an exception if a name is no slot. */
static int
use_class(Class *class, PyObject *type, const char *const *names, int count)
{
    for (class->count = 0; class->count < count;) {
        PyObject *slot = PyObject_GetAttrString(type, names[class->count]);
        if (slot == NULL)
            return -1;
        class->slots[class->count++] = slot;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%s is not a slot", names[class->count - 1]);
            return -1;
        }
    }
    class->type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

/* set_classes(UnaryCall, RequestHeaders, HeaderBlock, role of headers, role of trailers, stream window, bytes after
   which they are returned), once. */
static PyObject *
set_classes(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    State *state = PyModule_GetState(module);
    if (count != CLASSES + 4 || state->as_headers != NULL) {
        PyErr_SetString(PyExc_ValueError, "set_classes(class, ..., headers, trailers, window, bytes) once");
        return NULL;
    }
    state->as_headers = Py_NewRef(arguments[CLASSES]);
    state->as_trailers = Py_NewRef(arguments[CLASSES + 1]);
    state->stream_window = Py_NewRef(arguments[CLASSES + 2]);
    state->return_after = PyLong_AsSsize_t(arguments[CLASSES + 3]);
    state->done = PyUnicode_InternFromString("done");
    state->set_result = PyUnicode_InternFromString("set_result");
    state->on_data = PyUnicode_InternFromString("on_data");
    state->empty = PyBytes_FromStringAndSize("", 0);
    if (PyErr_Occurred())
        return NULL;
    for (int i = 0; i < CLASSES; i++) {
        if (!PyType_Check(arguments[i])) {
            PyErr_SetString(PyExc_TypeError, "not a class");
            return NULL;
        }
        if (use_class(&state->classes[i], arguments[i], names_of[i], counts[i]) < 0)
            return NULL;
    }
    state->set = (descrsetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_set);
    state->get = (descrgetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_get);
    Py_RETURN_NONE;
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->as_headers);
    Py_VISIT(state->as_trailers);
    for (int i = 0; i < CLASSES; i++) {
        Py_VISIT(state->classes[i].type);
        for (int slot = 0; slot < state->classes[i].count; slot++)
            Py_VISIT(state->classes[i].slots[slot]);
    }
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->get = NULL; /* nothing is read any more */
    Py_CLEAR(state->as_headers);
    Py_CLEAR(state->as_trailers);
    Py_CLEAR(state->stream_window);
    Py_CLEAR(state->done);
    Py_CLEAR(state->set_result);
    Py_CLEAR(state->on_data);
    Py_CLEAR(state->empty);
    for (int i = 0; i < CLASSES; i++) {
        Py_CLEAR(state->classes[i].type);
        for (int slot = 0; slot < state->classes[i].count; slot++)
            Py_CLEAR(state->classes[i].slots[slot]);
    }
    return 0;
}

static void
deallocate(void *module)
{
    clear(module);
}

static PyMethodDef methods[] = {
    {"advance", (PyCFunction)(void (*)(void))advance, METH_FASTCALL, NULL},
    {"start", (PyCFunction)(void (*)(void))start, METH_FASTCALL, NULL},
    {"set_classes", (PyCFunction)(void (*)(void))set_classes, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

/* Without Py_mod_multiple_interpreters: see `codec/_speedups.c`. */
static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "etcd_aio.transport.native._speedups", NULL, sizeof(State), methods, slots, traverse, clear,
    deallocate,
};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    return PyModuleDef_Init(&definition);
}
