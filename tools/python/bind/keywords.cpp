#include "keywords.hpp"

#include <cstdio>

namespace ndt_python
{

nb::object Keywords::object(const char *name)
{
    known_.push_back(name);
    if (given_.size() == taken_) // the usual case: nothing is left
        return nb::none();
    PyObject *found = PyDict_GetItemString(given_.ptr(), name);
    taken_ += found != nullptr;
    return found ? nb::borrow(found) : nb::none();
}

[[noreturn]] static void refuse_type(const char *name, const char *wanted, nb::handle value)
{
    throw nb::type_error((std::string(name) + ": " + wanted + " is wanted, not " + class_name(value)).c_str());
}

template <class T> static T in_range(const char *name, T value, T least, T most)
{
    if (value >= least && value <= most) // false for NaN
        return value;
    char text[160];
    std::snprintf(text, sizeof(text), "%s: %.10g is outside %.10g .. %.10g", name, static_cast<double>(value),
                  static_cast<double>(least), static_cast<double>(most));
    throw nb::value_error(text);
}

double Keywords::number(const char *name, double otherwise, double least, double most)
{
    const nb::object value = object(name);
    double out = otherwise;
    if (!value.is_none() && !nb::try_cast(value, out))
        refuse_type(name, "a number", value);
    return value.is_none() ? out : in_range(name, out, least, most);
}

int64_t Keywords::integer(const char *name, int64_t otherwise, int64_t least, int64_t most)
{
    const nb::object value = object(name);
    if (value.is_none())
        return otherwise;
    nb::object whole = nb::steal(PyNumber_Index(value.ptr()));
    if (!whole.is_valid()) {
        PyErr_Clear();
        refuse_type(name, "a whole number", value);
    }
    int overflow = 0;
    const int64_t out = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    return in_range(name, overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : out, least, most);
}

std::string Keywords::text(const char *name, const std::string &otherwise)
{
    const nb::object value = object(name);
    std::string out = otherwise;
    if (!value.is_none() && !nb::try_cast(value, out))
        refuse_type(name, "a string", value);
    return out;
}

int Keywords::label(const char *name, const ndt_label *labels, int otherwise)
{
    const std::string wanted = text(name, "");
    std::string known;
    if (wanted.empty())
        return otherwise;
    for (; labels->name; labels++) {
        if (wanted == labels->name)
            return labels->value;
        known += (known.empty() ? "" : ", ") + std::string(labels->name);
    }
    throw nb::value_error((std::string(name) + ": '" + wanted + "' is not known; there are: " + known).c_str());
}

std::vector<double> Keywords::numbers(const char *name, const std::vector<double> &otherwise, size_t most)
{
    const nb::object value = object(name);
    std::vector<double> out = otherwise;
    if (!value.is_none() && (nb::isinstance<nb::str>(value) || !nb::try_cast(value, out)))
        refuse_type(name, "a sequence of numbers", value);
    if (out.empty() || out.size() > most)
        throw nb::value_error((std::string(name) + ": 1 to " + std::to_string(most) + " numbers are wanted, not " +
                               std::to_string(out.size()))
                                  .c_str());
    return out;
}

void Keywords::end() const
{
    if (given_.size() == taken_)
        return;
    for (auto [key, value] : given_) {
        const auto name = nb::cast<std::string>(key);
        bool is_known = false;
        nb::list names;
        for (const char *known : known_) {
            is_known = is_known || name == known;
            names.append(known);
        }
        if (is_known)
            continue;
        std::string text = std::string(function_) + "() has no argument '" + name + "'";
        const nb::object near = nb::module_::import_("difflib").attr("get_close_matches")(name, names, 1);
        if (nb::len(near) > 0)
            text += "; did you mean '" + nb::cast<std::string>(near[0]) + "'?";
        throw nb::type_error(text.c_str());
    }
}

} // namespace ndt_python
